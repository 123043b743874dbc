import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, openSocket, type TestPlatform, testPlatform } from "../../support/index.ts";

// Every kind of schema that Elysia's `t` makes, and every way to declare one.

const BASE = "/api/functions";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `
import { defineConfig } from "platform";
import { Elysia, t } from "elysia";

const open = { access: true };
const own = (check) => ({ "~standard": { version: 1, vendor: "own", validate: check } });
const nonEmpty = own(async (value) => {
  await 1;
  return typeof value?.a === "string" && value.a !== "" ? { value: { a: value.a.toUpperCase() } } : { issues: [{ message: "is empty", path: ["a"] }] };
});
const kinds = {
  intersect: t.Intersect([t.Object({ a: t.Number() }), t.Object({ b: t.Optional(t.String()) })]),
  variants: t.Union([t.Object({ kind: t.Literal("a"), n: t.Number() }), t.Object({ kind: t.Literal("b"), s: t.String() })]),
  scalars: t.Array(t.Union([t.Number(), t.String(), t.Null()])),
  record: t.Record(t.String({ pattern: "^[a-z]+$" }), t.Number()),
  additional: t.Object({ a: t.Number() }, { additionalProperties: t.String() }),
  tuple: t.Tuple([t.String(), t.Number()]),
  nullable: t.Nullable(t.Number()),
  empty: t.Object({ a: t.MaybeEmpty(t.String()) }),
  unionEnum: t.UnionEnum(["a", 2]),
  enumeration: t.Enum({ One: "one", Two: "two" }),
  tree: t.Recursive((This) => t.Object({ name: t.String(), inner: t.Optional(t.Array(This)) })),
  template: t.TemplateLiteral("id-\${string}"),
  unique: t.Array(t.Number(), { uniqueItems: true }),
  exclusive: t.Number({ exclusiveMinimum: 1, exclusiveMaximum: 3 }),
  multiple: t.Number({ multipleOf: 0.1 }),
  not: t.Not(t.String()),
  email: t.String({ format: "email" }),
  date: t.Date(),
  integer: t.Integer(),
  numericEnum: t.NumericEnum({ A: 1, B: 2 }),
  text: t.ObjectString({ a: t.Number() }),
  partial: t.Partial(t.Object({ a: t.Number(), b: t.Number() })),
  composite: t.Composite([t.Object({ a: t.Number() }), t.Object({ b: t.Number() })]),
  anything: t.Any(),
};

export default defineConfig({
  routes: (api) => {
    for (const [name, schema] of Object.entries(kinds)) api.post("/kind/" + name, ({ body }) => ({ got: body.v }), { ...open, body: t.Object({ v: schema }) });
    return api
      .model({ order: t.Object({ n: t.Number() }), owned: nonEmpty })
      .macro({ paged: { query: t.Object({ page: t.Number({ minimum: 1 }) }) } })
      .post("/model", ({ body }) => ({ got: body }), { ...open, body: "order" })
      .post("/reference", ({ body }) => ({ got: body }), { ...open, body: t.Object({ list: t.Array(t.Ref("order")) }) })
      .post("/own", ({ body }) => ({ got: body }), { ...open, body: nonEmpty })
      .post("/owned", ({ body }) => ({ got: body }), { ...open, body: "owned" })
      .get("/own-query", ({ query }) => ({ got: query }), { ...open, query: own((value) => ({ value: { ...value, seen: true } })) })
      .post("/optional", ({ body }) => ({ got: body ?? null }), { ...open, body: t.Optional(t.Object({ n: t.Number() })) })
      .post("/defaults", ({ body }) => ({ got: body }), { ...open, body: t.Object({ n: t.Number({ default: 5 }), deep: t.Object({ s: t.String({ default: "x" }) }, { default: {} }) }) })
      .get("/default-query", ({ query }) => ({ got: query }), { ...open, query: t.Object({ n: t.Number({ default: 5 }), list: t.Array(t.String(), { default: ["a"] }) }) })
      .post("/bytes", ({ body }) => ({ got: body.byteLength }), { ...open, body: t.ArrayBuffer() })
      .get("/macro", ({ query }) => ({ got: query }), { ...open, paged: true })
      .get("/macro-beside", ({ query }) => ({ got: query }), { ...open, paged: true, query: t.Object({ q: t.String() }) })
      .guard({ schema: "standalone", query: t.Object({ q: t.String() }) }, (guarded) => guarded
        .get("/beside", ({ query }) => ({ got: query }), { ...open, query: t.Object({ n: t.Number() }) })
        .get("/beside-own", ({ query }) => ({ got: query }), { ...open, query: own((value) => ({ value: { own: true, ...value } })) }))
      .guard({ query: t.Object({ q: t.String() }) }, (guarded) => guarded.get("/guarded", ({ query }) => ({ got: query }), open))
      .use(new Elysia({ prefix: "/plugin" }).guard({ headers: t.Object({ "x-n": t.Number() }) }).get("/headers", ({ headers }) => ({ got: headers }), open))
      .get("/changed", ({ query }) => ({ got: query }), { ...open, query: t.Object({ n: t.Number() }), transform: ({ query }) => { query.n = "2" } })
      .get("/twice", ({ query }) => ({ got: query }), { ...open, query: t.Object({ s: t.Optional(t.String()), n: t.Optional(t.Number()), list: t.Optional(t.Array(t.String(), { minItems: 2, maxItems: 3 })), nums: t.Optional(t.Array(t.Number())) }) })
      .get("/cookies", ({ cookie }) => ({ got: cookie.n.value }), { ...open, cookie: t.Cookie({ n: t.Number() }) })
      .ws("/socket/:room", { ...open, params: t.Object({ room: t.Integer() }), query: t.Object({ n: t.Number() }), body: t.Object({ date: t.Date() }),
        open(ws) { ws.send({ params: ws.data.params, query: ws.data.query }) }, message(ws, { date }) { ws.send({ year: date.getUTCFullYear() }) } })
      .ws("/parsed", { ...open, parse: (ws, message) => typeof message === "string" ? { text: message } : undefined, body: t.Object({ text: t.String() }), message: (ws, message) => message });
  },
});`,
  });
});
afterAll(() => platform.stop());

type Got = ErrorAnswer & { got: unknown };
async function post(path: string, value: unknown): Promise<[number, unknown]> {
  const { status, body } = await platform.post<Got>(`${BASE}${path}`, value as never);
  return [status, status === 200 ? body.got : Object.keys(body.data ?? {})];
}
async function get(path: string, headers: Record<string, string> = {}): Promise<[number, unknown]> {
  const { status, body } = await platform.get<Got>(`${BASE}${path}`, { headers });
  return [status, status === 200 ? body.got : Object.keys(body.data ?? {})];
}

const KINDS: [kind: string, taken: unknown[], refused: [value: unknown, fields: string[]][]][] = [
  [
    "intersect",
    [{ a: 1 }, { a: 1, b: "x" }],
    [
      [{ b: "x" }, ["v.a"]],
      [{ a: 1, c: 1 }, ["v.c"]],
      [{ a: 1, b: 2 }, ["v.b"]],
      ["x", ["v"]],
    ],
  ],
  [
    "variants",
    [
      { kind: "a", n: 1 },
      { kind: "b", s: "x" },
    ],
    [
      [{ kind: "a", s: "x" }, ["v"]],
      [1, ["v"]],
    ],
  ],
  [
    "scalars",
    [[1, "x", null]],
    [
      [[true], ["v.0"]],
      [[[]], ["v.0"]],
    ],
  ],
  [
    "record",
    [{ a: 1, bc: 2 }],
    [
      [{ a: "x" }, ["v.a"]],
      [{ A: 1 }, ["v.A"]],
    ],
  ],
  ["additional", [{ a: 1, b: "x" }], [[{ a: 1, b: 2 }, ["v.b"]]]],
  [
    "tuple",
    [["a", 1]],
    [
      [["a"], ["v"]],
      [["a", "b"], ["v.1"]],
      [["a", 1, 2], ["v"]],
    ],
  ],
  ["nullable", [1, null], [["x", ["v"]]]],
  ["empty", [{ a: "x" }, { a: null }], [[{ a: 1 }, ["v.a"]]]],
  [
    "unionEnum",
    ["a", 2],
    [
      ["b", ["v"]],
      ["2", ["v"]],
    ],
  ],
  ["enumeration", ["one"], [["three", ["v"]]]],
  [
    "tree",
    [{ name: "a", inner: [{ name: "b", inner: [] }] }],
    [
      [{ name: "a", inner: [{ name: 1 }] }, ["v.inner.0.name"]],
      [{ name: "a", more: 1 }, ["v.more"]],
    ],
  ],
  ["template", ["id-7"], [["7", ["v"]]]],
  ["unique", [[1, 2]], [[[1, 1], ["v"]]]],
  [
    "exclusive",
    [2],
    [
      [1, ["v"]],
      [3, ["v"]],
    ],
  ],
  ["multiple", [0.3], [[0.35, ["v"]]]],
  ["not", [1], [["x", ["v"]]]],
  ["email", ["a@example.com"], [["a", ["v"]]]],
  [
    "integer",
    [7],
    [
      [1.5, ["v"]],
      ["x", ["v"]],
    ],
  ],
  ["numericEnum", [2], [[3, ["v"]]]],
  ["partial", [{}, { a: 1 }], [[{ c: 1 }, ["v.c"]]]],
  ["composite", [{ a: 1, b: 2 }], [[{ a: 1 }, ["v.b"]]]],
  ["anything", [1, "x", null, { a: [{}] }], []],
];

test.each(KINDS)("[FN8] the schema %s", async (kind, taken, refused) => {
  for (const v of taken) expect([v, ...(await post(`/kind/${kind}`, { v }))]).toEqual([v, 200, v]);
  for (const [v, fields] of refused) expect([v, ...(await post(`/kind/${kind}`, { v }))]).toEqual([v, 400, fields]);
});

test("[FN8] types that take texts in JSON too", async () => {
  expect(await post("/kind/integer", { v: "7" })).toEqual([200, 7]);
  expect(await post("/kind/date", { v: "2030-01-01" })).toEqual([200, "2030-01-01T00:00:00.000Z"]);
  expect(await post("/kind/date", { v: "soon" })).toEqual([400, ["v"]]);
  expect(await post("/kind/text", { v: '{"a":1}' })).toEqual([200, { a: 1 }]);
  expect(await post("/kind/text", { v: '{"a":1,"b":2}' })).toEqual([400, ["v.b"]]);
  expect(await post("/kind/text", { v: { a: "1" } })).toEqual([400, ["v.a"]]);
});

test("[FN1] [FN8] schemas are declared by name, by other libraries, by macros and by guards", async () => {
  expect(await post("/model", { n: 1 })).toEqual([200, { n: 1 }]);
  expect(await post("/model", { n: "x" })).toEqual([400, ["n"]]);
  expect(await post("/reference", { list: [{ n: 1 }] })).toEqual([200, { list: [{ n: 1 }] }]);
  expect(await post("/reference", { list: [{ n: 1, m: 1 }] })).toEqual([400, ["list.0.m"]]);
  for (const path of ["/own", "/owned"]) {
    expect([path, ...(await post(path, { a: "x" }))]).toEqual([path, 200, { a: "X" }]);
    expect([path, ...(await post(path, { a: "" }))]).toEqual([path, 400, ["a"]]);
  }
  expect(await get("/own-query?a=1&a=2&b=3")).toEqual([200, { a: ["1", "2"], b: "3", seen: true }]);
  expect(await get("/macro?page=2")).toEqual([200, { page: 2 }]);
  expect(await get("/macro?page=0")).toEqual([400, ["page"]]);
  expect(await get("/macro-beside?page=2&q=x")).toEqual([200, { page: 2, q: "x" }]);
  expect(await get("/macro-beside?q=x&r=1")).toEqual([400, ["page", "r"]]);
  expect(await get("/beside?q=x&n=1")).toEqual([200, { q: "x", n: 1 }]);
  expect(await get("/beside?n=1")).toEqual([400, ["q"]]);
  expect(await get("/beside?n=1&q=x&z=1")).toEqual([400, ["z"]]);
  expect(await get("/beside-own?q=x")).toEqual([200, { own: true, q: "x" }]);
  expect(await get("/guarded?q=x")).toEqual([200, { q: "x" }]);
  expect(await get("/guarded")).toEqual([400, ["q"]]);
  expect(await get("/plugin/headers", { "x-n": "1" })).toEqual([200, { "x-n": 1 }]);
  expect(await get("/plugin/headers")).toEqual([400, ["x-n"]]);
  expect(await get("/changed?n=1")).toEqual([200, { n: 2 }]);
});

test("[FN8] bodies that may be missing, defaults, and bytes", async () => {
  const send = async (path: string, init: RequestInit) => {
    const response = await platform.fetch(`${BASE}${path}`, { method: "POST", ...init });
    return [response.status, ((await response.json()) as Got).got];
  };
  expect(await send("/optional", {})).toEqual([200, null]);
  expect(await post("/optional", { n: 1 })).toEqual([200, { n: 1 }]);
  expect(await post("/optional", { n: "x" })).toEqual([400, ["n"]]);
  expect((await send("/model", {}))[0]).toBe(400);
  expect(await post("/defaults", {})).toEqual([200, { n: 5, deep: { s: "x" } }]);
  expect(await get("/default-query")).toEqual([200, { n: 5, list: ["a"] }]);
  expect(await get("/default-query?n=6&list=b")).toEqual([200, { n: 6, list: ["b"] }]);
  expect(
    await send("/bytes", { body: new Uint8Array(3), headers: { "content-type": "application/octet-stream" } }),
  ).toEqual([200, 3]);
});

test.each([
  ["list=a,b", 200, { list: ["a", "b"] }],
  ["list=a&list=b,c", 200, { list: ["a", "b", "c"] }],
  ["list=[a,b]", 200, { list: ["a", "b"] }],
  ['list=["a","b,c"]', 200, { list: ["a", "b,c"] }],
  ["list=a", 400, ["list"]],
  ["list=a,b,c,d", 400, ["list"]],
  ["nums=1,2", 200, { nums: [1, 2] }],
  ["nums=a", 400, ["nums.0"]],
  ["s=a&s=b", 400, ["s"]],
  ["n=1&n=2", 400, ["n"]],
  ["s=a%20b+c", 200, { s: "a b c" }],
])("[FN32] the query %s", async (query, status, expected) => {
  expect(await get(`/twice?${query}`)).toEqual([status, expected]);
});

test("[FN32] a cookie is converted, and other cookies are left alone", async () => {
  const response = await platform.fetch(`${BASE}/cookies`, { headers: { cookie: "n=7; other=%7B%22a%22%3A1%7D" } });
  expect(((await response.json()) as Got).got).toBe(7);
  expect(response.headers.getSetCookie().filter((one) => one.startsWith("other"))).toEqual([]);
});

test("[FN8] [FN14] a WebSocket's parameters and messages become what their schemas say", async () => {
  const open = (path: string) => openSocket(`${platform.wsUrl}${BASE}${path}`);
  const socket = await open("/socket/7?n=1");
  expect(await socket.next()).toEqual({ params: { room: 7 }, query: { n: 1 } });
  socket.send({ date: "2030-01-01" });
  expect(await socket.next()).toEqual({ year: 2030 });
  socket.send({ date: 1, more: 1 });
  expect(Object.keys((await socket.next<ErrorAnswer & Record<string, never>>()).data ?? {})).toEqual(["more"]);
  await socket.close();
  await expect(open("/socket/x?n=1")).rejects.toThrow();
  await expect(open("/socket/7?n=x")).rejects.toThrow();
  const parsed = await open("/parsed");
  parsed.send("hello");
  expect(await parsed.next()).toEqual({ text: "hello" });
  await parsed.close();
});
