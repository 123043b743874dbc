import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { upload } from "../storage/storage-support.ts";

// A session that ends while a rule, a hook or a search of its request is awaited.

const TABLES = "/api/db/shared/tables";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `
      let release = () => {};
      const held = () => (console.error("it waits"), new Promise((resolve) => { release = () => resolve(true); }));
      const open = { read: true, insert: true, update: true, delete: true };
      export default {
        databases: { shared: { tables: {
          byRule: { access: { read: true, insert: held, update: held, delete: held } },
          byHook: { access: open, hooks: {
            beforeInsert: async (_auth, record) => (await held(), record),
            beforeUpdate: async (_auth, _record, changes) => (await held(), changes),
            beforeDelete: async () => { await held(); },
          } },
          byRead: { schema: { text: { type: "text" } }, fts: ["text"], access: { read: async () => await held() } },
          bySearch: { access: { ...open, read: async (_auth, record) => await held() } },
        } } },
        storage: { buckets: { files: { access: {
          read: (_auth, file) => file.key.startsWith("held/") ? held() : true,
          write: (_auth, _file) => held(),
        } } } },
        routes: (api) => api
          .post("/release", () => { release(); return {}; }, { access: true })
          .get("/held", () => ({}), { access: held }),
      };`,
  });
});
afterAll(() => platform.stop());

type Way = [what: string, table: string, send: (user: SignedIn) => Promise<{ status: number }>];
const WAYS: Way[] = [
  ["an insert waits for its rule", "byRule", (user) => user.post(`${TABLES}/byRule`, { text: "late" })],
  ["a change waits for its rule", "byRule", (user) => user.patch(`${TABLES}/byRule/stored`, { text: "late" })],
  ["a deletion waits for its rule", "byRule", (user) => user.delete(`${TABLES}/byRule/stored`)],
  ["an insert waits for a hook", "byHook", (user) => user.post(`${TABLES}/byHook`, { text: "late" })],
  [
    "a transaction waits for a hook",
    "byHook",
    (user) =>
      user.post("/api/db/shared/transaction", {
        operations: [{ table: "byHook", action: "insert", data: { text: "late" } }],
      }),
  ],
  [
    "records to be changed are looked for",
    "bySearch",
    (user) =>
      user.post(`${TABLES}/bySearch/batch-by-filter`, {
        action: "update",
        filter: [["id", "==", "stored"]],
        data: { text: "late" },
      }),
  ],
];

const ENDS: [name: string, end: (at: string) => Promise<{ status: number }>][] = [
  ["a revocation", (at) => platform.service.post(`${at}/revoke`)],
  ["another role", (at) => platform.service.patch(at, { role: "editor" })],
  ["a deletion", (at) => platform.service.delete(at)],
];

const timesWaited = (): number => platform.stderr().split("it waits").length;

/** The answer to a request that waits, until after `meanwhile`. */
async function whileItWaits(request: () => Promise<{ status: number }>, meanwhile: () => Promise<{ status: number }>) {
  const before = timesWaited();
  let isAnswered = false;
  const answer = request().finally(() => {
    isAnswered = true;
  });
  await until("it waits", () => timesWaited() > before);
  expect((await meanwhile()).status).toBe(200);
  await until("it is answered", async () => {
    await platform.post("/api/functions/release", {});
    return isAnswered;
  });
  return answer;
}

for (const [what, table, send] of WAYS) {
  test.each(ENDS)(`[HT136] %s comes while ${what}: 401, and nothing is written`, async (_, end) => {
    const stored = { id: "stored", text: "before" };
    const records = async (): Promise<JsonObject[]> =>
      (await platform.service.get<ListAnswer>(`${TABLES}/${table}`)).body.items;
    const imported = await whileItWaitsIf(table === "byHook", () =>
      platform.service.post(`${TABLES}/${table}?upsert=true`, stored),
    );
    expect([200, 201]).toContain(imported.status);
    const before = await records();
    const user = await signIn(platform);
    const answer = await whileItWaits(
      () => send(user),
      () => end(`/api/auth/admin/users/${user.id}`),
    );
    expect([answer.status, await records()]).toEqual([401, before]);
  });
}

const whileItWaitsIf = (isHeld: boolean, request: () => Promise<{ status: number }>) =>
  isHeld ? whileItWaits(request, () => platform.get("/api/health")) : request();

const READS: [what: string, path: string][] = [
  ["a record", `${TABLES}/byRead/stored`],
  ["a list", `${TABLES}/byRead`],
  ["a search", `${TABLES}/byRead/search?q=before`],
  ["a file", "/api/storage/files/held/stored"],
  ["a list of files", "/api/storage/files"],
];

for (const [what, path] of READS) {
  test.each(ENDS)(`[HT136] %s comes while ${what} waits for its rule: 401, and nothing is shown`, async (_, end) => {
    await platform.service.post(`${TABLES}/byRead?upsert=true`, { id: "stored", text: "before" });
    await upload(platform.service, "files", "held/stored", "before");
    const [user, other] = [await signIn(platform), await signIn(platform)];
    const kept = await whileItWaits(
      () => user.fetch(path),
      () => platform.get("/api/health"),
    );
    expect(kept.status).toBe(200);
    const answer = await whileItWaits(
      () => other.fetch(path),
      () => end(`/api/auth/admin/users/${other.id}`),
    );
    expect(answer.status).toBe(401);
  });
}

test.each(ENDS)("[HT136] %s comes while a route waits for its rule: 401", async (_, end) => {
  const user = await signIn(platform);
  const answer = await whileItWaits(
    () => user.get("/api/functions/held"),
    () => end(`/api/auth/admin/users/${user.id}`),
  );
  expect(answer.status).toBe(401);
});

test.each(ENDS)("[HT136] %s comes while an upload waits for its rule: 401, and nothing is stored", async (_, end) => {
  const user = await signIn(platform);
  const form = new FormData();
  form.set("key", "late");
  form.set("file", new File(["bytes"], "a.txt"));
  const answer = await whileItWaits(
    () => user.fetch("/api/storage/files/upload", { method: "POST", body: form }),
    () => end(`/api/auth/admin/users/${user.id}`),
  );
  expect([answer.status, (await platform.service.fetch("/api/storage/files/late")).status]).toEqual([401, 404]);
});
