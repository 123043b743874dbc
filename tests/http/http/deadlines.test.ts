import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
const path = (table: string) => `/api/db/shared/tables/${table}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      const never = (_auth) => new Promise(() => {});
      const neverOfRecord = (_auth, _record) => new Promise(() => {});
      const neverOfAny = (...args) => new Promise(() => {});
      const neverLate = async (...args) => { if (args[1]?.id === "x") return true; return new Promise(() => {}); };
      const rules = (rule) => ({ read: rule, insert: rule, update: rule, delete: rule });
      const open = { read: true, insert: true, update: true, delete: true };
      export default defineConfig({
        databases: {
          shared: { tables: {
            byAuth: { access: rules(never) }, byRecord: { access: rules(neverOfRecord) }, byRest: { access: rules(neverOfAny) },
            byLate: { access: rules(neverLate) },
            hooked: { access: open, hooks: { beforeInsert: neverOfRecord, beforeUpdate: neverOfRecord, beforeDelete: neverOfRecord } },
          } },
          opened: { instance: true, access: { create: true, open: never }, tables: { notes: { access: open } } },
          created: { instance: true, access: { create: never, open: true }, tables: { notes: { access: open } } },
        },
        storage: { buckets: { files: { access: { read: never, write: (_auth, _file) => new Promise(() => {}), delete: neverOfAny } } } },
        routes: (api) => api.get("/never", () => "answered", { access: never }),
      });`,
  });
  ann = await signIn(platform, { email: "ann@example.com" });
});
afterAll(() => platform.stop());

test("[TB144, ST41] [FN6] rules that never answer deny, and hooks that never answer are 503, each after its deadline", async () => {
  const RULED = ["byAuth", "byRecord", "byRest", "byLate"];
  for (const table of RULED) await platform.service.post(path(table), { id: "a", n: 1 });
  await platform.service.post("/api/db/opened/one/tables/notes", { id: "a" });
  const asked: [name: string, status: number, answer: Promise<{ status: number; body: ErrorAnswer }>][] = [];
  for (const table of RULED) {
    const P = path(table);
    asked.push(
      [`${table} list`, 403, ann.get(P)],
      [`${table} get`, 403, ann.get(`${P}/a`)],
      [`${table} count`, 403, ann.get(`${P}/count`)],
      [`${table} insert`, 403, ann.post(P, { id: `new-${table}` })],
      [`${table} update`, 403, ann.patch(`${P}/a`, { n: 2 })],
      [`${table} upsert`, 403, ann.post(`${P}?upsert=true`, { id: "a", n: 2 })],
      [`${table} delete`, 403, ann.delete(`${P}/a`)],
      [`${table} batch`, 403, ann.post(`${P}/batch`, { updates: [{ id: "a", data: { n: 2 } }], deletes: ["a"] })],
    );
  }
  asked.push(
    ["hook", 503, ann.post(path("hooked"), { n: 1 })],
    ["hook in a batch", 503, ann.post(`${path("hooked")}/batch`, { inserts: [{ n: 1 }, { n: 2 }] })],
    ["open", 403, ann.get("/api/db/opened/one/tables/notes")],
    ["create", 403, ann.post("/api/db/created/one/tables/notes", {})],
    ["file", 403, ann.get("/api/storage/files")],
    ["deletion of a file", 403, ann.delete("/api/storage/files/a.txt")],
    ["route", 403, ann.get("/api/functions/never")],
  );
  for (const [name, status, answer] of asked) expect([name, (await answer).status]).toEqual([name, status]);
  const log = platform.stdout() + platform.stderr();
  for (const said of [
    "an access rule did not settle in time",
    "a hook did not settle in time",
    "took longer than 5000 ms",
  ]) {
    expect(log).toContain(said);
  }
  expect((await platform.service.get<{ total: number }>(`${path("byRecord")}/count`)).body.total).toBe(1);
}, 60_000);
