import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type ListAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

const CONFIG = `{
  databases: { shared: { tables: {
    notes: {
      schema: { owner: { type: "string" }, kind: { type: "string" }, data: { type: "json" } },
      indexes: [{ fields: ["kind"] }],
      access: {
        read: (auth) => auth !== null && [["owner", "==", auth.id]],
        update: (auth) => auth !== null && [["owner", "==", auth.id]],
        delete: (auth) => auth !== null,
      },
    },
    large: {
      schema: {
        owner: { type: "string" }, kind: { type: "string" }, code: { type: "string", unique: true }, score: { type: "number" },
      },
      indexes: [{ fields: ["kind", "score"] }, { fields: ["owner", "kind"] }, { fields: ["score"] }],
      access: { read: (auth) => auth !== null && [["owner", "==", auth.id]] },
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
  // An expression that fails shows whether it was evaluated: SQLite throws for text that is not JSON.
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

test("[TB110, TB48] on a large table too, a rule's filter and the caller's conditions match the same records by any index", async () => {
  const L = "/api/db/shared/tables/large";
  const RECORDS = 6_200;
  const records = Array.from({ length: RECORDS }, (_, n) => ({
    id: `r${String((n * 4_001) % RECORDS).padStart(5, "0")}`,
    owner: n % 3 === 0 ? ann.id : "bob",
    kind: n % 5 === 0 ? "rare" : "common",
    code: n % 7 === 0 ? null : `c${String(n).padStart(5, "0")}`,
    score: (n * 31) % 40,
  }));
  for (let start = 0; start < RECORDS; start += 500) {
    const { status } = await platform.service.post(`${L}/batch`, { inserts: records.slice(start, start + 500) });
    expect(status).toBe(200);
  }
  const cases: [unknown[], (record: (typeof records)[number]) => boolean][] = [
    [[], () => true],
    [[["code", "==", "c00003"]], ({ code }) => code === "c00003"],
    [[["code", "==", "c00004"]], ({ code }) => code === "c00004"],
    [[["code", "==", null]], ({ code }) => code === null],
    [
      [
        ["code", "in", ["c00003", "c00006", "c00008"]],
        ["score", "!=", 93],
      ],
      ({ code }) => ["c00003", "c00006", "c00008"].includes(String(code)),
    ],
    [
      [
        ["id", "in", ["r00000", "r00001", "r00002"]],
        ["kind", "contains", "r"],
      ],
      ({ id, kind }) => ["r00000", "r00001", "r00002"].includes(id) && kind === "rare",
    ],
    [[["kind", "==", "rare"]], ({ kind }) => kind === "rare"],
    [[["owner", "==", "bob"]], () => false],
    [
      [
        ["owner", "==", ann.id],
        ["kind", "==", "rare"],
      ],
      ({ kind }) => kind === "rare",
    ],
    [
      [
        ["kind", "==", "rare"],
        ["score", ">=", 10],
        ["score", "<", 20],
      ],
      ({ kind, score }) => kind === "rare" && score >= 10 && score < 20,
    ],
    [[["score", ">", 30]], ({ score }) => score > 30],
  ];
  for (const [filter, keeps] of cases) {
    const wanted = records.filter((record) => record.owner === ann.id && keeps(record)).map(({ id }) => id);
    for (const sort of ["id", "score:desc", "kind,code"]) {
      const found: unknown[] = [];
      let after = "";
      for (;;) {
        const query = { filter: text(filter), sort, limit: 900, ...(after === "" ? {} : { after }) };
        const { status, body } = await ann.get<ListAnswer>(L, { query });
        expect([filter, sort, status]).toEqual([filter, sort, 200]);
        if (after === "") expect([filter, sort, body.total]).toEqual([filter, sort, wanted.length]);
        found.push(...body.items.map(({ id }) => id));
        if (body.cursor === null) break;
        after = body.cursor;
      }
      expect([filter, sort, found.sort()]).toEqual([filter, sort, [...wanted].sort()]);
    }
    const counted = await ann.get<{ total: number }>(`${L}/count`, { query: { filter: text(filter) } });
    expect([filter, counted.body.total]).toEqual([filter, wanted.length]);
  }
});

test("[TB118] a hidden record is not read any further, whichever way it is named", async () => {
  // Its JSON is none: whoever parsed it would be answered 500.
  expect((await platform.service.get(`${P}/hidden1`)).status).toBe(500);
  const transaction = (operation: object) =>
    ["POST", "/api/db/shared/transaction", { operations: [{ table: "notes", ...operation }] }] as const;
  const ways = (id: string) => [
    ["GET", `${P}/${id}`] as const,
    ["PATCH", `${P}/${id}`, { kind: "a" }] as const,
    ["PATCH", `${P}/${id}?if=${encodeURIComponent(text([["kind", "==", "a"]]))}`, {}] as const,
    ["DELETE", `${P}/${id}`] as const,
    ["POST", `${P}/batch`, { updates: [{ id, data: { kind: "a" } }] }] as const,
    ["POST", `${P}/batch`, { deletes: [id] }] as const,
    transaction({ action: "update", id, data: { kind: "a" } }),
    transaction({ action: "delete", id }),
  ];
  const ask = async ([method, path, body]: readonly [string, string, object?]) => {
    const headers = { "content-type": "application/json" };
    const init = body === undefined ? { method } : { method, headers, body: text(body) };
    const answer = await ann.fetch(path, init);
    return `${answer.status} ${await answer.text()}`;
  };
  for (const [index, way] of ways("hidden1").entries()) {
    const missing = ways("missing")[index] ?? way;
    const [heard, wanted] = [await ask(way), (await ask(missing)).replaceAll("missing", "hidden1")];
    expect([way, heard]).toEqual([way, wanted]);
    expect(heard).toStartWith("404");
  }
  const upserts = [
    ["POST", `${P}?upsert=true`, { id: "hidden1", kind: "a" }] as const,
    ["POST", `${P}/batch?upsert=true`, { inserts: [{ id: "hidden1", kind: "a" }] }] as const,
    transaction({ action: "upsert", data: { id: "hidden1", kind: "a" } }),
  ];
  for (const way of upserts) expect([way, (await ask(way)).slice(0, 3)]).toEqual([way, "403"]);
});
