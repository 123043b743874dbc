import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

const BASE = "/api/functions";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `
import { defineConfig, Refusal } from "platform";
import { file, t } from "elysia";

const seven = t.Transform(t.String()).Decode((text) => {
  if (text !== "7") throw new Refusal("only 7", { status: 422 });
  return 7;
}).Encode(String);

export default defineConfig({
  cors: { origin: "*" },
  routes: (api) => api
    .get("/query", ({ query }) => query, { access: true, query: t.Object({
      n: t.Number({ minimum: 1 }),
      integer: t.Optional(t.Integer({ maximum: 5 })),
      numeric: t.Optional(t.Numeric({ exclusiveMaximum: 5 })),
      list: t.Optional(t.Array(t.Number({ minimum: 3 }))),
      date: t.Optional(t.Date({ minimumTimestamp: Date.UTC(2020, 0) })),
      object: t.Optional(t.Object({ n: t.Number({ minimum: 2 }) })),
      seven: t.Optional(seven),
    }) })
    .get("/path/:id", ({ params }) => params, { access: true, params: t.Object({ id: t.Number({ minimum: 1 }) }) })
    .get("/header", ({ headers }) => headers["x-n"], { access: true, headers: t.Object({ "x-n": t.Number({ minimum: 1 }) }) })
    .get("/cookie", ({ cookie }) => cookie.n.value, { access: true, cookie: t.Cookie({ n: t.Number({ minimum: 1 }) }) })
    .post("/form", ({ body }) => body, { access: true, body: t.Object({ n: t.Numeric({ minimum: 1 }) }) })
    .post("/picture", ({ body }) => body.file.size, { access: true, body: t.Object({ file: t.File({ type: ["image/png", "image/gif"] }) }) })
    .get("/late-text", async () => { await Bun.sleep(1); return "é".repeat(50_000) }, { access: true })
    .get("/late-json", async () => { await Bun.sleep(1); return { text: "é".repeat(50_000) } }, { access: true })
    .get("/late-headers", async ({ set }) => {
      await Bun.sleep(1);
      Object.assign(set.headers, { "content-type": "text/csv", "x-own": "1" });
      set.status = 202;
      return "é".repeat(50_000);
    }, { access: true })
    .get("/checked/:n", ({ params, status }) => params.n === "created" ? status(201, { on: true }) : { n: params.n === "seven" ? 7 : params.n, date: new Date(0), extra: 1 }, { access: true, response: {
      200: t.Object({ n: t.Integer({ maximum: 9 }), date: t.Date() }),
      201: t.Object({ on: t.BooleanString() }),
    } })
    .get("/short", () => ({ short: true }), { access: true })
    .get("/file", () => file(import.meta.filename), { access: true }),
});`,
  });
});
afterAll(() => platform.stop());

test("[FN8] numbers and dates that come as text are converted", async () => {
  const query = `n=1.5&integer=5&numeric=4&list=4,5&date=2020-01-01&object=${encodeURIComponent('{"n":2}')}&seven=7`;
  expect((await platform.get(`${BASE}/query?${query}`)).body).toEqual({
    n: 1.5,
    integer: 5,
    numeric: 4,
    list: [4, 5],
    date: "2020-01-01T00:00:00.000Z",
    object: { n: 2 },
    seven: 7,
  });
});

test.each([
  ["n=0", "n", "too_small"],
  ["n=1&integer=6", "integer", "too_large"],
  ["n=1&numeric=5", "numeric", "too_large"],
  ["n=1&list=5&list=1", "list.1", "too_small"],
  ["n=1&list=5,1", "list.1", "too_small"],
  ["n=1&date=1999-01-01", "date", "invalid_value"],
  [`n=1&object=${encodeURIComponent('{"n":1}')}`, "object.n", "too_small"],
])("[FN8] a value out of its bounds in the query %s is 400 and named", async (query, field, code) => {
  const { status, body } = await platform.get<ErrorAnswer>(`${BASE}/query?${query}`);
  expect([status, Object.keys(body.data ?? {}), body.data?.[field]?.code]).toEqual([400, [field], code]);
  expect(body.message).toStartWith(`${field} `);
});

test("[FN8] a value out of its bounds in path, headers, cookies and forms is 400 and named", async () => {
  const form = new FormData();
  form.set("n", "0");
  for (const [field, path, init] of [
    ["id", "path/0", {}],
    ["x-n", "header", { headers: { "x-n": "0" } }],
    ["n", "cookie", { headers: { cookie: "n=0" } }],
    ["n", "form", { method: "POST", body: form }],
  ] as const) {
    const response = await platform.fetch(`${BASE}/${path}`, init);
    const { data } = (await response.json()) as ErrorAnswer;
    expect([path, response.status, Object.keys(data ?? {})]).toEqual([path, 400, [field]]);
    expect(data?.[field]?.code).toBe("too_small");
  }
});

test("[FN8] a file whose content is of another type than it says is 400 and named", async () => {
  const send = async (content: string | Uint8Array<ArrayBuffer>) => {
    const body = new FormData();
    body.set("file", new File([content], "a.png", { type: "image/png" }));
    const response = await platform.fetch(`${BASE}/picture`, { method: "POST", body });
    return [response.status, await response.json()];
  };
  expect(await send(Buffer.from("GIF89a\x01\x00\x01\x00\x00\x00\x00;", "latin1"))).toEqual([200, expect.any(Number)]);
  const message = "file: its content must be image/png or image/gif";
  const refused = { code: 400, message, data: { file: { code: "invalid_value", message } } };
  expect(await send("<script>")).toEqual([400, refused]);
});

test("[FN10] a Refusal of a conversion is the answer", async () => {
  expect(await platform.get(`${BASE}/query?n=1&seven=8`)).toMatchObject({ status: 422, body: { message: "only 7" } });
});

test("[HT91] [FN13] a long answer that waited has its length and its type, and no body to HEAD", async () => {
  const text = "é".repeat(50_000);
  const origin = { origin: "https://app.example" };
  for (const [path, status, type, body, headers] of [
    ["late-text", 200, "text/plain;charset=utf-8", text, {}],
    ["late-text", 200, "text/plain;charset=utf-8", text, origin],
    ["late-json", 200, "application/json;charset=utf-8", JSON.stringify({ text }), origin],
    ["late-headers", 202, "text/csv", text, {}],
    ["short", 200, "application/json;charset=utf-8", '{"short":true}', {}],
  ] as const) {
    const answer = await platform.fetch(`${BASE}/${path}`, { headers });
    expect([answer.status, answer.headers.get("x-own")]).toEqual([status, status === 202 ? "1" : null]);
    expect(answer.headers.has("access-control-allow-origin")).toBe("origin" in headers);
    const length = String(Buffer.byteLength(body));
    expect((await answer.text()) === body).toBe(true);
    expect([answer.headers.get("content-type"), answer.headers.get("content-length")]).toEqual([type, length]);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    const head = await platform.fetch(`${BASE}/${path}`, { method: "HEAD", headers });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([status, length, ""]);
  }
});

test("[FN1] a file of Elysia's is answered", async () => {
  expect(await (await platform.fetch(`${BASE}/file`)).text()).toContain("import.meta.filename");
});

test("[FN9] whole numbers, booleans and dates of answers are checked, for each status", async () => {
  const seven = await platform.get(`${BASE}/checked/seven`);
  expect([seven.status, seven.body]).toEqual([200, { n: 7, date: "1970-01-01T00:00:00.000Z" }]);
  const created = await platform.get(`${BASE}/checked/created`);
  expect([created.status, created.body]).toEqual([201, { on: true }]);
  expect((await platform.get(`${BASE}/checked/x`)).status).toBe(500);
});
