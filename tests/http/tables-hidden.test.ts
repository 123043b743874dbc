import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type ListAnswer, signIn, type TestPlatform, testPlatform } from "../support/index.ts";

const CONFIG = `{
  databases: { shared: { tables: {
    notes: {
      schema: { owner: { type: "string" }, kind: { type: "string" }, data: { type: "json" } },
      indexes: [{ fields: ["kind"] }],
      access: {
        read: (auth) => auth !== null && [["owner", "==", auth.id]],
        update: (auth) => auth !== null && [["owner", "==", auth.id]],
      },
    },
  } } },
}`;
const P = "/api/db/shared/tables/notes";

let platform: TestPlatform;
let ann: Awaited<ReturnType<typeof signIn>>;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
  const inserts = [
    ...[1, 2, 3].map((n) => ({ id: `own${n}`, owner: ann.id, kind: "a", data: { n } })),
    ...[1, 2, 3].map((n) => ({ id: `hidden${n}`, owner: "bob", kind: "a", data: { n } })),
  ];
  expect((await platform.service.post(`${P}/batch`, { inserts })).status).toBe(200);
  // What cannot be evaluated tells whether it was: SQLite throws at text that is no JSON.
  await platform.kill("SIGTERM");
  const [path = ""] = new Bun.Glob("**/shared.db").scanSync({ cwd: platform.dataDirectory, absolute: true });
  const database = new Database(path);
  database.run(`UPDATE "notes" SET "data" = '{not json' WHERE "owner" = 'bob'`);
  database.close();
  await platform.restart();
});
afterAll(() => platform.stop());

const text = (value: unknown) => JSON.stringify(value);

test("[TB110] conditions, sorts and cursors of the caller are not evaluated on records that the read rule hides", async () => {
  const conditions = [
    [["data.n", ">=", 1]],
    [["data", "contains", 1]],
    [["data.n", "not in", [7, 8]]],
    [
      ["kind", "==", "a"],
      ["data.n", "!=", 9],
    ],
    [
      ["id", ">", "a"],
      ["data.n", "!=", 9],
    ],
    [
      ["id", "in", ["own1", "hidden1", "hidden2"]],
      ["data.n", "!=", 9],
    ],
  ];
  expect((await platform.service.get(P, { query: { filter: text(conditions[0]) } })).status).toBe(500);
  for (const condition of conditions) {
    for (const query of [{ filter: text(condition) }, { orFilter: text(condition) }]) {
      for (const sort of ["id", "data.n", "kind,data.n:desc"]) {
        const list = await ann.get<ListAnswer>(P, { query: { ...query, sort, limit: 1 } });
        expect([query, sort, list.status]).toEqual([query, sort, 200]);
        const { cursor } = list.body;
        if (cursor === null) continue;
        for (const way of ["after", "before"]) {
          const page = await ann.get<ListAnswer>(P, { query: { ...query, sort, limit: 1, [way]: cursor } });
          expect([query, sort, way, page.status]).toEqual([query, sort, way, 200]);
        }
      }
      expect((await ann.get(`${P}/count`, { query })).status).toBe(200);
    }
    const change = { action: "update", filter: condition, data: { kind: "a" } };
    expect((await ann.post<ErrorAnswer>(`${P}/batch-by-filter`, change as never)).status).toBe(200);
  }
});
