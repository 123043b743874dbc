import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, openSocket, type TestPlatform, testPlatform } from "../../support/index.ts";

// Every way in which a route gets values, and every bound of values: docs/http.md.

const BASE = "/api/functions";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `
import { defineConfig } from "platform";
import { t } from "elysia";

const members = {
  any: t.Optional(t.Array(t.Any())),
  object: t.Optional(t.Object({ n: t.Optional(t.Number()) })),
  open: t.Optional(t.Object({}, { additionalProperties: true })),
  numbers: t.Optional(t.Array(t.Number())),
  list: t.Optional(t.Array(t.Any(), { minItems: 2, maxItems: 3 })),
  n: t.Optional(t.Number()),
};
const schema = t.Object(members);
const open = { access: true };

export default defineConfig({
  server: { maxBodySize: 4 * 1024 * 1024 },
  routes: (api) => api
    .post("/body", ({ body }) => ({ got: body }), { ...open, body: schema })
    .get("/query", ({ query }) => ({ got: query }), { ...open, query: schema })
    .get("/headers", ({ headers }) => ({ got: headers }), { ...open, headers: schema })
    .get("/cookies", ({ cookie }) => ({ got: Object.fromEntries(Object.entries(cookie).map(([name, { value }]) => [name, value])) }), { ...open, cookie: t.Cookie(members) })
    .get("/any/:any", ({ params }) => ({ got: params }), { ...open, params: t.Object({ any: members.any }) })
    .get("/object/:object", ({ params }) => ({ got: params }), { ...open, params: t.Object({ object: members.object }) })
    .get("/open/:open", ({ params }) => ({ got: params }), { ...open, params: t.Object({ open: members.open }) })
    .get("/numbers/:numbers", ({ params }) => ({ got: params }), { ...open, params: t.Object({ numbers: members.numbers }) })
    .get("/list/:list", ({ params }) => ({ got: params }), { ...open, params: t.Object({ list: members.list }) })
    .get("/n/:n", ({ params }) => ({ got: params }), { ...open, params: t.Object({ n: members.n }) })
    .ws("/socket", { ...open, body: schema, message(ws, message) { ws.send({ code: 200, got: message }) } })
    .post("/free", ({ body }) => ({ got: body }), open)
    .post("/text", ({ body }) => ({ got: body }), { ...open, body: t.Object({ a: t.Number() }) })
    .post("/number", ({ body }) => ({ got: body }), { ...open, body: t.Number({ maximum: 5 }) }),
});`,
  });
});
afterAll(() => platform.stop());

interface Answer {
  status: number;
  data: ErrorAnswer["data"];
  got: unknown;
}

const answerOf = async (path: string, init: RequestInit = {}): Promise<Answer> => {
  const response = await platform.fetch(`${BASE}${path}`, init);
  const body = (await response.json()) as ErrorAnswer & { got: unknown };
  return { status: response.status, data: body.data, got: body.got };
};
const post = (path: string, body: string | FormData, type?: string): Promise<Answer> =>
  answerOf(path, { method: "POST", body, headers: type === undefined ? {} : { "content-type": type } });

const asForm = (fields: Record<string, string>): FormData => {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return form;
};
const URLENCODED = "application/x-www-form-urlencoded";

/** Sends a member `name` whose value is this JSON. */
type Way = (name: string, json: string) => Promise<Answer>;

const WAYS: Record<string, Way> = {
  JSON: (name, json) => post("/body", `{"${name}":${json}}`, "application/json"),
  "a large JSON body": (name, json) => post("/body", `{"${name}":${json}${" ".repeat(140_000)}}`, "application/json"),
  "another JSON type": (name, json) => post("/body", `{"${name}":${json}}`, "Application/Problem+JSON; charset=utf-8"),
  urlencoded: (name, json) => post("/body", new URLSearchParams({ [name]: json }).toString(), URLENCODED),
  multipart: (name, json) => post("/body", asForm({ [name]: json })),
  "a large form": (name, json) => post("/body", asForm({ [name]: json + " ".repeat(140_000) })),
  query: (name, json) => answerOf(`/query?${new URLSearchParams({ [name]: json })}`),
  header: (name, json) => answerOf("/headers", { headers: { [name]: json } }),
  cookie: (name, json) => answerOf("/cookies", { headers: { cookie: `${name}=${encodeURIComponent(json)}` } }),
  path: (name, json) => answerOf(`/${name}/${encodeURIComponent(json)}`),
  async socket(name, json) {
    const socket = await openSocket(`${platform.wsUrl}${BASE}/socket`);
    socket.send(`{"${name}":${json}}`);
    const { code, data, got } = await socket.next<{ code: number; data: Answer["data"]; got: unknown }>();
    await socket.close();
    return { status: code, data, got };
  },
};

const NAMES = Object.keys(WAYS);

const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

/** A request and its answer: the status and the fields at fault, null where the answer cannot name them. */
const BOUNDS: [what: string, name: string, json: string, status: number, fields: readonly string[] | null][] = [
  ["60 levels", "any", nested(60), 200, []],
  ["65 levels", "any", nested(65), 400, null],
  ["5,000 levels", "any", nested(5_000), 400, null],
  ["brackets without an end", "any", "[".repeat(5_000), 400, null],
  ["an unknown member", "object", '{"m":1}', 400, ["object.m"]],
  [
    "30 unknown members",
    "object",
    JSON.stringify(Object.fromEntries([...Array(30).keys()].map((i) => [`m${i}`, 1]))),
    400,
    null,
  ],
  ["the member __proto__", "open", '{"__proto__":{"admin":true}}', 400, null],
  ["the member __proto__ in escapes", "open", '{"a":[{"_\\u005fproto__":1}]}', 400, null],
  ["a list for an object", "object", JSON.stringify(Array(2_000).fill(1)), 400, ["object"]],
  ["a text for an object", "object", JSON.stringify("x".repeat(5_000)), 400, ["object"]],
  ["an object for a list", "numbers", '{"a":1}', 400, null],
  ["a text within a list of numbers", "numbers", '[1,"x"]', 400, ["numbers.1"]],
  ["a list that is too short", "list", "[1]", 400, ["list"]],
  ["a list of two", "list", "[1,2]", 200, []],
  ["a list that is too long", "list", "[1,2,3,4]", 400, ["list"]],
  ["a number that no double is", "n", "1e400", 400, null],
  ["an integer beyond doubles", "n", "9007199254740993", 400, null],
  ["a number that no double is in a list", "numbers", "[1e400]", 400, null],
  ["half of a pair of surrogates", "open", '{"a":"\\ud800"}', 400, null],
];

const CASES = NAMES.flatMap((way) => BOUNDS.map((bound) => [way, ...bound] as const));

test.each(CASES)("[FN8] [FN31] by %s: %s", async (way, _, name, json, status, fields) => {
  const answer = await WAYS[way]?.(name, json);
  expect(answer?.status).toBe(status);
  if (status === 200) expect(answer?.got).toMatchObject({ [name]: JSON.parse(json) });
  if (fields !== null) expect(Object.keys(answer?.data ?? {})).toEqual([...fields]);
});

test.each(NAMES)("[FN31] by %s an answer names at most 100 faults", async (way) => {
  const answer = await WAYS[way]?.("numbers", JSON.stringify(Array(300).fill("x")));
  expect([answer?.status, Object.keys(answer?.data ?? {}).length]).toEqual([400, 100]);
});

test("[FN31] values are counted in each kind of body, and in messages", async () => {
  const many = `[${Array(260_000).fill("1").join()}]`;
  for (const way of ["JSON", "urlencoded", "multipart"]) {
    expect([way, (await WAYS[way]?.("numbers", many))?.status]).toEqual([way, 413]);
  }
  expect((await WAYS["socket"]?.("numbers", `[${Array(26_000).fill("1").join()}]`))?.status).toBe(413);
  const form = new FormData();
  for (const name of "abcd") form.set(name, `[${Array(70_000).fill("1").join()}]`);
  expect((await post("/free", form)).status).toBe(413);
});

test("[FN31] a text where an object is wanted is one fault, however long it is", async () => {
  const text = "x".repeat(1024 * 1024);
  for (const [body, type] of [
    [text, "text/plain"],
    [JSON.stringify(text), "application/json"],
    [JSON.stringify(Array(100_000).fill(1)), "application/json"],
  ] as const) {
    expect(await post("/text", body, type)).toMatchObject({ status: 400, data: undefined });
  }
  expect((await post("/number", "5", "text/plain")).got).toBe(5);
  expect((await post("/number", "6", "text/plain")).status).toBe(400);
});

test("[FN17] [FN31] a form has as many fields, names and entries as the guide says", async () => {
  const fields = (count: number) => [...Array(count).keys()].map((index) => `f${index}=1`).join("&");
  for (const [what, body, status] of [
    ["1,000 fields", fields(1_000), 200],
    ["1,001 fields", fields(1_001), 400],
    ["an index", "items[999].a=1", 200],
    ["an index beyond", "items[1000].a=1", 400],
    ["entries that nobody names", [...Array(20).keys()].map((index) => `l${index}[999]=1`).join("&"), 400],
    ["a long name", `${"n".repeat(1_001)}=1`, 400],
    ["64 levels of names", `${Array(64).fill("a").join(".")}=1`, 200],
    ["65 levels of names", `${Array(65).fill("a").join(".")}=1`, 400],
    ["a prototype", "a.__proto__.b=1", 400],
    ["what is no UTF-8", "a=%ff", 400],
  ] as const) {
    expect([what, (await post("/free", body, URLENCODED)).status]).toEqual([what, status]);
  }
  const many = new FormData();
  for (let index = 0; index < 1_001; index++) many.append("a", "1");
  expect((await post("/free", many)).status).toBe(400);
});

test("[FN31] a form in many pieces is the form in one", async () => {
  const value = "é+&=%20".repeat(30_000);
  const body = new URLSearchParams([
    ["a.b", value],
    ["list", "1"],
    ["list", "2"],
    ["c", ""],
  ]).toString();
  const sent = `${body}&d&%zz=%4`;
  expect((await post("/free", sent, URLENCODED)).got).toEqual({
    a: { b: value },
    list: ["1", "2"],
    c: "",
    d: "",
    "%zz": "%4",
  });
});

test("[FN31] at most 200 cookies", async () => {
  const cookies = (count: number) => [...Array(count).keys()].map((index) => `c${index}=1`).join("; ");
  expect((await answerOf("/cookies", { headers: { cookie: cookies(200) } })).status).toBe(200);
  expect((await answerOf("/cookies", { headers: { cookie: cookies(201) } })).status).toBe(400);
});
