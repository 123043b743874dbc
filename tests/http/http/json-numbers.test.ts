import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;

beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      databases: { shared: { tables: {
        things: { schema: { n: { type: "number" }, i: { type: "integer" }, doc: { type: "json" } }, access: { read: true, insert: true, update: true } },
        free: { access: { read: true, insert: true, update: true } },
      } } },
      kv: { values: {} }, d1: { sql: {} }, vectorize: { films: { dimensions: 2 } },
    }`,
  });
  ann = await signIn(platform, { email: "ann@example.com" });
});
afterAll(() => platform.stop());

const TOO_LONG = "9007199254740993";

const VECTOR = `{"action":"upsert","vectors":[{"id":"v","values":[1,2],"metadata":{"n":${TOO_LONG}}}]}`;

/** Sends text as it is: no JavaScript value says it. */
async function send(method: string, path: string, body: string) {
  const headers = { "content-type": "application/json" };
  const client = path.startsWith("/api/auth/me") ? ann : platform.service;
  const response = await client.fetch(path, { method, headers, body });
  const answer: { data?: Record<string, { code: string }> } = JSON.parse(await response.text());
  return { status: response.status, data: answer.data };
}

test("[HT100] an integer that a double cannot hold is refused wherever data is stored, and named", async () => {
  const P = "/api/db/shared/tables";
  await platform.service.post(`${P}/things`, { id: "a" });
  const refused: [method: string, path: string, body: string, field: string][] = [
    ["POST", `${P}/things`, `{"n":${TOO_LONG}}`, "n"],
    ["POST", `${P}/things`, `{"i":-${TOO_LONG}}`, "i"],
    ["POST", `${P}/things?upsert=true`, `{"id":"a","doc":{"a":[0,${TOO_LONG}]}}`, "doc.a.1"],
    ["POST", `${P}/free`, `{"any":{"thing":1e400}}`, "any.thing"],
    ["POST", `${P}/free`, `{"any":${TOO_LONG}}`, "any"],
    ["PATCH", `${P}/things/a`, `{"n":{"$op":"increment","value":${TOO_LONG}}}`, "n.value"],
    ["POST", `${P}/things/batch`, `{"inserts":[{"n":1},{"n":12345678901234567890}]}`, "inserts.1.n"],
    ["POST", "/api/kv/values", `{"action":"set","key":"k","value":[${TOO_LONG}]}`, "value.0"],
    ["POST", "/api/d1/sql", `{"sql":"SELECT ?","params":[${TOO_LONG}]}`, "params.0"],
    ["POST", "/api/vectorize/films", VECTOR, "vectors.0.metadata.n"],
    ["PATCH", "/api/auth/me", `{"metadata":{"n":${TOO_LONG}}}`, "metadata.n"],
  ];
  for (const [method, path, body, field] of refused) {
    const { status, data } = await send(method, path, body);
    expect([path, body, status, data?.[field]?.code]).toEqual([path, body, 400, "invalid_value"]);
  }
});

test("[HT100] integers that a double holds come back as they were sent", async () => {
  const numbers = "[9007199254740992,-9007199254740991,0.1,1e+300,5e-324,1000000000000000000]";
  const made = await send("POST", "/api/db/shared/tables/things", `{"id":"kept","n":0.1,"doc":${numbers}}`);
  expect(made.status).toBe(201);
  const { body } = await platform.get("/api/db/shared/tables/things/kept");
  expect(JSON.stringify(body["doc"])).toBe(numbers);
  const text = await send("POST", "/api/db/shared/tables/free", `{"id":"text","n":"${TOO_LONG}"}`);
  expect(text.status).toBe(201);
});

test("[TB10] [TB15] numbers beyond 2^53 in JSON are found by their value, and paged over once each", async () => {
  const numbers = [2 ** 60, -(2 ** 60), 2 ** 60 + 256, 2 ** 63, -(2 ** 63), 2 ** 62 + 2 ** 40, 1e21, 2 ** 54, 0.1, 5];
  const ids = numbers.map((_, index) => `n${index}`);
  const inAscendingOrder = [...ids].sort((a, b) => (numbers[ids.indexOf(a)] ?? 0) - (numbers[ids.indexOf(b)] ?? 0));
  for (const [table, field, of] of [
    ["free", "n", (n: number) => ({ n, list: [n] })],
    ["things", "doc.n", (n: number) => ({ doc: { n, list: [n] } })],
  ] as const) {
    const P = `/api/db/shared/tables/${table}`;
    const own = `["id",">=","n0"],["id","<","o"]`;
    const asked = (filter: string) => `filter=${encodeURIComponent(`[${own},${filter}]`)}`;
    const inserts = numbers.map((n, index) => ({ id: ids[index] ?? "", ...of(n) }));
    expect((await platform.service.post(`${P}/batch`, { inserts })).status).toBe(200);
    const found = async (filter: string) =>
      (await platform.get<{ items: { id: string }[] }>(`${P}?${asked(filter)}`)).body.items.map(({ id }) => id);
    for (const [index, n] of numbers.entries()) {
      const one = [ids[index]];
      expect([n, await found(`["${field}","==",${n}]`)]).toEqual([n, one] as never);
      expect([n, await found(`["${field}","in",[${n},7]]`)]).toEqual([n, one] as never);
      expect([n, await found(`["${field.replace(/n$/, "list")}","contains",${n}]`)]).toEqual([n, one] as never);
      expect([n, await found(`["${field}",">=",${n}],["${field}","<=",${n}]`)]).toEqual([n, one] as never);
      const filter = asked(`["${field}","==",${n}]`);
      expect((await platform.get(`${P}/count?${filter}`)).body).toEqual({ total: 1 });
      // In a query process.
      expect((await platform.get(`${P}/aggregate?${filter}`)).body).toEqual({ groups: [{ "count()": 1 }] } as never);
    }
    for (const direction of ["asc", "desc"]) {
      const wanted = direction === "asc" ? inAscendingOrder : [...inAscendingOrder].reverse();
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page = `${P}?limit=1&sort=${field}:${direction}&filter=${encodeURIComponent(`[${own}]`)}`;
        const { body }: { body: { items: { id: string }[]; cursor: string | null } } = await platform.get(
          cursor === null ? page : `${page}&after=${cursor}`,
        );
        seen.push(...body.items.map(({ id }) => id));
        cursor = body.cursor;
      } while (cursor !== null && seen.length <= ids.length);
      expect([direction, seen]).toEqual([direction, wanted]);
    }
  }
});
