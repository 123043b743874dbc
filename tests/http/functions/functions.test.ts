import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type ErrorAnswer,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
  until,
} from "../../support/index.ts";

const CONFIG = `
import { defineConfig, Refusal } from "platform";
import { t, Elysia, NotFoundError } from "elysia";
import viaPackage from "plug";

const plugin = new Elysia({ name: "own" }).get("/plugin", () => "plugin").get("/plugin/:id", ({ params }) => params, { access: true });
const later = import("./later.ts");
const isAdmin = (auth) => auth?.role === "admin";
const [adminOnly, ofPlugin, ofGuard, ofGroup] = Array.from({ length: 4 }, () => ({ access: isAdmin }));

export default defineConfig({
  server: { maxBodySize: 200_000 },
  databases: { shared: { tables: { notes: { access: { read: true } } } } },
  serviceKeys: {
    caller: { key: "a-service-key-for-the-route-hello-only", scopes: ["functions:*:hello:call"] },
    other: { key: "a-service-key-for-something-else-at-all", scopes: ["kv:namespace:*:read"] },
  },
  routes: (api) => api
    .get("/hello", ({ auth, serviceKey, requestId, address, app, request }) =>
      ({ auth: auth?.id ?? null, serviceKey, requestId, address, hasApp: typeof app.db, method: request.method }))
    .get("/open", () => ({ open: true }), { access: true })
    .get("/admin", () => "admin", { access: (auth) => auth?.role === "admin" })
    .get("/later", () => "later", { access: async (auth, { params, request }) => request.headers.get("x-right") === "yes" })
    .get("/of/:owner", ({ params }) => params, { access: (auth, { params }) => auth?.id === params.owner })
    .get("/truthy", () => "truthy", { access: () => 1 })
    .get("/refusing", () => "never", { access: () => { throw new Refusal("not on Sundays", { status: 409 }) } })
    .get("/broken", () => "never", { access: () => { throw new Error("a secret of the rule") } })
    .post("/typed", ({ body }) => ({ body }), { access: true, body: t.Object({
      title: t.String({ minLength: 2 }), deep: t.Optional(t.Object({ n: t.Number() })), list: t.Optional(t.Array(t.Object({ a: t.String() }))),
      free: t.Optional(t.Object({}, { additionalProperties: true })),
    }) })
    .post("/protected", ({ body, cookie }) => ({ body }), { body: t.Object({ title: t.String() }), query: t.Object({ n: t.Number() }), cookie: t.Cookie({ c: t.String() }) })
    .get("/query", ({ query }) => query, { access: true, query: t.Object({ n: t.Number() }) })
    .post("/raw", async ({ request }) => ({ text: await request.text() }), { access: true })
    .post("/bytes", async ({ request }) => ({ bytes: (await request.arrayBuffer()).byteLength }), { access: true })
    .post("/unread", () => ({ read: false }), { access: true })
    .post("/form", ({ body }) => ({ names: Object.keys(body) }), { access: true, body: t.Any() })
    .get("/refuse", () => { throw new Refusal("sold out", { status: 422, fields: { n: { code: "sold_out", message: "none is left" } } }) }, { access: true })
    .get("/crash", () => { throw new Error("a secret of the handler") }, { access: true })
    .get("/crash-later", async () => { await 1; throw new Error("a secret of the handler") }, { access: true })
    .get("/text", () => { throw "a secret text" }, { access: true })
    .get("/undefined", () => { throw undefined }, { access: true })
    .get("/none", () => { throw new NotFoundError() }, { access: true })
    .get("/thrown-status", ({ status }) => { throw status(418, { tea: true }) }, { access: true })
    .get("/status", ({ status }) => status(202, { later: true }), { access: true })
    .get("/wrong", () => ({ a: "a secret answer" }), { access: true, response: t.Object({ a: t.Number() }) })
    .get("/extra", () => ({ a: 1, secret: 2 }), { access: true, response: t.Object({ a: t.Number() }) })
    .get("/hangs", () => new Promise(() => {}), { access: true, timeout: 1 })
    .get("/stream", async function* () { yield "a"; yield "b" }, { access: true })
    .get("/endless", async function* () { while (true) { yield "tick"; await new Promise((resolve) => setTimeout(resolve, 5)) } }, { access: true })
    .get("/response", () => new Response("<p>", { headers: { "content-type": "text/html", "x-own": "1" } }), { access: true })
    .get("/cookie", ({ cookie: { seen } }) => { seen.value = "yes"; return "ok" }, { access: true })
    .get("/header", ({ query, set }) => { set.headers["x-own"] = query.text; return "ok" }, { access: true })
    .group("/group", (group) => group.get("/open", () => "open", { access: true }).get("/closed", () => "closed"))
    .get("/shared-first", () => "x", adminOnly).get("/shared-hook", () => "x", { ...adminOnly, transform: () => {} })
    .use(new Elysia().get("/shared-plugin", () => "x", ofPlugin)).get("/shared-after", () => "x", { ...ofPlugin, transform: () => {} })
    .guard(ofGuard, (guarded) => guarded.get("/shared-guard", () => "x")).get("/shared-guarded", () => "x", { ...ofGuard, transform: () => {} })
    .group("/shared", ofGroup, (group) => group.get("/group", () => "x")).get("/shared-grouped", () => "x", { ...ofGroup, transform: () => {} })
    .guard({ access: (auth) => auth?.role === "admin" }, (guarded) => guarded.get("/guarded", () => "x").get("/guarded-open", () => "x", { access: true }))
    .mount("/mounted", () => new Response("mounted"))
    .use(plugin).use(viaPackage).use(later)
    .use(new Elysia().onError(({ error }) => ({ mine: error.message })).get("/own-error", () => { throw new Error("known") }, { access: true }).get("/own-error-closed", () => "x"))
    .use(new Elysia().guard({ access: () => false }).get("/scoped-guard", () => "x"))
    .use(new Elysia().onRequest(({ request, set }) => { set.headers["x-hook"] = "1"; if (request.url.includes("early")) return new Response("early") })),
});`;

const FILES = {
  "later.ts": `import { Elysia } from "elysia";\nexport default new Elysia().get("/loaded-later", () => "x").get("/loaded-open", () => "loaded", { access: true } as never);`,
  "node_modules/elysia/package.json": `{ "name": "elysia", "version": "0.0.1", "main": "index.js" }`,
  "node_modules/elysia/index.js": `exports.Elysia = class Wrong {};`,
  "node_modules/plug/package.json": `{ "name": "plug", "version": "1.0.0", "main": "index.cjs" }`,
  "node_modules/plug/index.cjs": `const { Elysia } = require("elysia");\nmodule.exports = new Elysia().get("/packaged", () => "packaged", { access: true });`,
};

const BASE = "/api/functions";
let platform: TestPlatform;
let user: SignedIn;
let admin: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG, files: FILES });
  user = await signIn(platform);
  admin = await signIn(platform, { role: "admin" });
});
afterAll(() => platform.stop());

const logged = (headers: Headers) =>
  until("the log has the request's id", () => platform.stderr().includes(String(headers.get("x-request-id"))));

const statusOf = async (path: string, caller: Pick<TestPlatform, "get"> = platform): Promise<number> =>
  (await caller.get(`${BASE}${path}`)).status;

test("[FN3] handlers know who calls", async () => {
  const { body } = await user.get<{ requestId: string }>(`${BASE}/hello`);
  expect(body).toEqual({
    auth: user.id,
    serviceKey: null,
    requestId: expect.any(String),
    address: "127.0.0.1",
    hasApp: "function",
    method: "GET",
  } as never);
  const seen = await platform.withKey("a-service-key-for-the-route-hello-only").get(`${BASE}/hello`);
  expect(seen.body).toMatchObject({ auth: null, serviceKey: { name: "caller" } });
  expect(seen.headers.get("x-request-id")).toBe(String(seen.body["requestId"]));
});

test("[FN2] the config, what it imports and packages beside it have the Elysia that serves", async () => {
  expect((await platform.get(`${BASE}/packaged`)).body).toEqual({ text: "packaged" });
  expect((await platform.get(`${BASE}/loaded-open`)).body).toEqual({ text: "loaded" });
});

test("[FN4] without access a signed-in user may call, in groups, plugins and mounted handlers too", async () => {
  const closed = ["/hello", "/plugin", "/group/closed", "/loaded-later", "/mounted/x", "/own-error-closed"];
  for (const path of closed) expect([path, await statusOf(path)]).toEqual([path, 401]);
  for (const path of closed) expect([path, await statusOf(path, user)]).toEqual([path, 200]);
  for (const path of ["/open", "/plugin/7", "/group/open"]) expect([path, await statusOf(path)]).toEqual([path, 200]);
});

test("[FN4] a rule allows by true alone, at once or later, and sees the parameters and the request", async () => {
  expect([await statusOf("/admin"), await statusOf("/admin", user), await statusOf("/admin", admin)]).toEqual([
    401, 403, 200,
  ]);
  expect([await statusOf(`/of/${user.id}`, user), await statusOf(`/of/${admin.id}`, user)]).toEqual([200, 403]);
  expect(await statusOf("/truthy", user)).toBe(403);
  expect((await platform.get(`${BASE}/later`, { headers: { "x-right": "yes" } })).status).toBe(200);
  expect(await statusOf("/later")).toBe(401);
});

test("[FN4] a guard's access and the route's own must both allow", async () => {
  for (const path of ["/guarded", "/guarded-open"]) {
    expect([path, await statusOf(path), await statusOf(path, user), await statusOf(path, admin)]).toEqual([
      path,
      401,
      403,
      200,
    ]);
  }
  expect(await statusOf("/scoped-guard", admin)).toBe(403);
});

test("[FN4] options that routes share keep their access, whatever a route adds to them", async () => {
  const own = ["first", "hook", "plugin", "after", "guard", "guarded", "grouped"].map((name) => `/shared-${name}`);
  for (const path of [...own, "/shared/group"]) {
    const found = [await statusOf(path), await statusOf(path, user), await statusOf(path, admin)];
    expect([path, ...found]).toEqual([path, 401, 403, 200]);
  }
});

test("[FN5] a service key is judged by its scopes", async () => {
  expect(await statusOf("/admin", platform.service)).toBe(200);
  const key = platform.withKey("a-service-key-for-the-route-hello-only");
  expect([await statusOf("/hello", key), await statusOf("/open", key)]).toEqual([200, 403]);
  expect(await statusOf("/hello", platform.withKey("a-service-key-for-something-else-at-all"))).toBe(403);
  expect(await statusOf("/open", platform.withKey("not a key"))).toBe(401);
});

test("[FN6] access is asked before the form of a request is judged", async () => {
  const form = { headers: { cookie: "c=%FF" }, query: { wrong: 1 } };
  expect((await platform.post(`${BASE}/protected`, { wrong: 1 }, form)).status).toBe(401);
  const broken = await platform.fetch(`${BASE}/protected`, {
    method: "POST",
    body: "{",
    headers: { "content-type": "application/json" },
  });
  expect(broken.status).toBe(401);
  expect((await user.post(`${BASE}/protected`, { wrong: 1 }, form)).status).toBe(400);
});

test("[FN6] a rule that throws denies", async () => {
  expect((await user.get(`${BASE}/refusing`)).body).toEqual({ code: 409, message: "not on Sundays" });
  const { status, body } = await user.get<ErrorAnswer>(`${BASE}/broken`);
  expect([status, body.message]).toEqual([403, "Access denied"]);
  await until("the log has the error", () => platform.stderr().includes("a secret of the rule"));
});

test("[FN7] unknown paths and methods are answered before credentials are looked at", async () => {
  const wrong = platform.as("not a token");
  expect((await wrong.get(`${BASE}/nothing`)).status).toBe(404);
  const { status, headers } = await wrong.delete(`${BASE}/hello`);
  expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  expect(await statusOf("/hello", wrong)).toBe(401);
  expect(await statusOf("")).toBe(404);
  expect(await statusOf("/")).toBe(404);
});

test("[FN7] [FN4] no spelling of a path or method passes the rule of its route", async () => {
  const spellings = ["/admin/", "//admin", "/./admin", "/%61dmin", "/admin?x=/open", "/admin%2f", "/open/../admin"];
  for (const path of [
    ...spellings,
    "/Admin",
    "/admin;x",
    "/admin%00",
    "/%2561dmin",
    "/group//closed",
    "/admin#/open",
  ]) {
    expect([path, await statusOf(path)]).not.toEqual([path, 200]);
    expect([path, (await platform.head(`${BASE}${path}`)).status]).not.toEqual([path, 200]);
  }
  for (const header of ["x-http-method-override", "x-original-url", "x-rewrite-url"]) {
    const answer = await platform.get(`${BASE}/admin`, { headers: { [header]: `${BASE}/open` } });
    expect([header, answer.status]).toEqual([header, 401]);
  }
  expect((await platform.get(`${BASE}/of/%ff`)).status).toBe(400);
});

test("[FN8] a body that violates its schema is 400 and names each field", async () => {
  const valid = { title: "ab", deep: { n: 1 }, list: [{ a: "b" }], free: { any: 1 } };
  expect((await platform.post(`${BASE}/typed`, valid)).body).toEqual({ body: valid });
  const body = { title: "a", deep: { n: "1", x: 1 }, list: [{ a: "b", y: 1 }], z: 1 };
  const { status, body: answer } = await platform.post<ErrorAnswer>(`${BASE}/typed`, body);
  expect(status).toBe(400);
  const codes = Object.fromEntries(Object.entries(answer.data ?? {}).map(([name, { code }]) => [name, code]));
  expect(codes).toEqual({
    title: "too_short",
    "deep.n": "invalid_type",
    "deep.x": "unknown_field",
    "list.0.y": "unknown_field",
    z: "unknown_field",
  });
  const missing = await platform.post<ErrorAnswer>(`${BASE}/typed`, {});
  expect(missing.body).toEqual({
    code: 400,
    message: "title is required",
    data: { title: { code: "required", message: "title is required" } },
  });
});

test("[FN8] members of prototypes are members like others", async () => {
  for (const name of ["__proto__", "constructor", "prototype"]) {
    const body = `{"title":"ab","${name}":{"admin":true}}`;
    const headers = { "content-type": "application/json" };
    const response = await platform.fetch(`${BASE}/typed`, { method: "POST", body, headers });
    expect([name, response.status]).toEqual([name, 400]);
    expect(Object.keys(((await response.json()) as ErrorAnswer).data ?? {})).toEqual([name]);
  }
});

test("[FN8] what is not JSON is 400", async () => {
  const bodies = ["{", "", `${"[".repeat(100)}${"]".repeat(100)}`, new Uint8Array([0x22, 0xff, 0x22])];
  for (const body of [...bodies, `{"title":"${"x".repeat(100_000)}`]) {
    const headers = { "content-type": "application/json" };
    const response = await platform.fetch(`${BASE}/typed`, { method: "POST", body, headers });
    expect(response.status).toBe(400);
  }
});

test("[FN8] unknown query parameters of a declared query are 400", async () => {
  expect((await platform.get(`${BASE}/query?n=1`)).body).toEqual({ n: 1 });
  const { status, body } = await platform.get<ErrorAnswer>(`${BASE}/query?n=1&m=2`);
  expect([status, body.data?.["m"]?.code]).toEqual([400, "unknown_field"]);
  expect((await platform.get(`${BASE}/query?n=x`)).status).toBe(400);
});

test("[FN9] an answer that breaks its schema is a logged 500; further members are removed", async () => {
  const { status, headers, body } = await platform.get(`${BASE}/wrong`);
  expect([status, body]).toEqual([500, { code: 500, message: "Internal error" }]);
  await logged(headers);
  expect(platform.stderr()).not.toContain("a secret answer");
  expect((await platform.get(`${BASE}/extra`)).body).toEqual({ a: 1 });
});

test("[FN10] a Refusal and status(…) are the answer, everything else that is thrown is a logged 500", async () => {
  expect(await platform.get(`${BASE}/refuse`)).toMatchObject({
    status: 422,
    body: { code: 422, message: "sold out", data: { n: { code: "sold_out", message: "none is left" } } },
  });
  expect(await platform.get(`${BASE}/thrown-status`)).toMatchObject({ status: 418, body: { tea: true } });
  expect(await platform.get(`${BASE}/status`)).toMatchObject({ status: 202, body: { later: true } });
  expect(await platform.get(`${BASE}/none`)).toMatchObject({ status: 404, body: { code: 404, message: "Not found" } });
  expect((await platform.get(`${BASE}/own-error`)).body).toEqual({ mine: "known" });
  for (const path of ["/crash", "/crash-later", "/text", "/undefined"]) {
    const { status, headers, body } = await platform.get(`${BASE}${path}`);
    expect([path, status, body]).toEqual([path, 500, { code: 500, message: "Internal error" }]);
    await logged(headers);
  }
});

test("[FN11] a handler that does not answer is 503, and others go on", async () => {
  const hanging = [1, 2, 3].map(() => platform.get<ErrorAnswer>(`${BASE}/hangs`));
  expect((await platform.get(`${BASE}/open`)).status).toBe(200);
  for (const { status, body } of await Promise.all(hanging)) {
    expect([status, body.message]).toEqual([503, "There was no answer within 1 s"]);
  }
});

/** Chunks without a declared length. */
const streamed = (chunk: string, count: number) =>
  new ReadableStream({
    start(controller) {
      for (let index = 0; index < count; index++) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });

test("[FN12] maxBodySize binds every body", async () => {
  const large = "x".repeat(200_001);
  const send = (path: string, body: string | ReadableStream, type = "text/plain") =>
    platform.fetch(`${BASE}${path}`, { method: "POST", body, headers: { "content-type": type } });
  for (const path of ["/raw", "/bytes", "/unread", "/form"]) {
    expect([path, (await send(path, large)).status]).toEqual([path, 413]);
  }
  expect((await send("/typed", JSON.stringify({ title: large }), "application/json")).status).toBe(413);
  const chunk = "x".repeat(50_000);
  for (const path of ["/raw", "/bytes", "/form"]) {
    expect([path, (await send(path, streamed(chunk, 5))).status]).toEqual([path, 413]);
    expect([path, (await send(path, streamed(chunk, 3))).status]).toEqual([path, 200]);
  }
  const form = streamed(`--edge\r\ncontent-disposition: form-data; name="a"\r\n\r\n${chunk}\r\n`, 5);
  expect((await send("/form", form, "multipart/form-data; boundary=edge")).status).toBe(413);
  const json = streamed(JSON.stringify({ title: chunk }), 5);
  expect((await send("/typed", json, "application/json")).status).toBe(413);
});

test("[FN12] a handler gets the bytes as they were sent", async () => {
  const text = '{ "a":1.0,\n"b" : "\\u00e9" }';
  const headers = { "content-type": "application/json" };
  for (const body of [text, streamed(text, 1)]) {
    const response = await platform.fetch(`${BASE}/raw`, { method: "POST", body, headers });
    expect(await response.json()).toEqual({ text });
  }
});

test("[FN13] answers have what all answers have", async () => {
  const origin = { headers: { origin: "https://app.example.com" } };
  const paths = ["/open", "/hello", "/crash", "/nothing", "/response", "/stream", "/early", "/cookie"];
  for (const path of paths) {
    const { headers } = await platform.get(`${BASE}${path}`, origin);
    const common = ["x-request-id", "x-content-type-options", "access-control-allow-origin"];
    expect([path, common.filter((name) => headers.get(name) === null)]).toEqual([path, []]);
  }
  const ids = await Promise.all(
    paths.map(async (path) => (await platform.get(`${BASE}${path}`)).headers.get("x-request-id")),
  );
  expect(new Set(ids).size).toBe(paths.length);
  const preflight = await platform.fetch(`${BASE}/typed`, { method: "OPTIONS", ...origin });
  expect([preflight.status, preflight.headers.get("access-control-allow-methods")]).toEqual([204, "POST, OPTIONS"]);
  expect((await platform.head(`${BASE}/open`)).status).toBe(200);
});

test("[FN1] [FN13] streams, responses and cookies come as the handler makes them", async () => {
  expect((await platform.get(`${BASE}/stream`)).body).toEqual({ text: "ab" });
  const { headers, body } = await platform.get(`${BASE}/response`);
  expect([headers.get("content-type"), headers.get("x-own"), body]).toEqual(["text/html", "1", { text: "<p>" }]);
  expect((await platform.get(`${BASE}/cookie`)).headers.get("set-cookie")).toContain("seen=yes");
});

test("[FN13] HEAD of an answer without an end is answered at once", async () => {
  const { status, headers } = await platform.head(`${BASE}/endless`);
  expect([status, headers.get("x-content-type-options")]).toEqual([200, "nosniff"]);
  expect((await platform.head(`${BASE}/hello`)).status).toBe(401);
});

test("[FN13] [HT6] HEAD has the length that GET has", async () => {
  for (const path of ["/open", "/response"]) {
    const [head, get] = [await platform.head(`${BASE}${path}`), await platform.get(`${BASE}${path}`)];
    expect(get.headers.get("content-length")).not.toBe("0");
    expect(head.headers.get("content-length")).toBe(get.headers.get("content-length"));
  }
  // A length of 0 would say that there is nothing.
  expect((await platform.head(`${BASE}/stream`)).headers.get("content-length")).toBeNull();
});

test("[FN13] a value from a request adds no header", async () => {
  const { status, headers } = await platform.get(`${BASE}/header?text=${encodeURIComponent("a\r\nx-injected: 1")}`);
  expect(headers.get("x-injected")).toBeNull();
  expect(status).toBe(500);
});

test("[FN13] the metrics have the pattern of a route's path", async () => {
  await platform.get(`${BASE}/plugin/a-value-of-its-own`);
  const text = await (await platform.service.fetch("/metrics")).text();
  expect(text).toContain('area="functions"');
  expect(text).not.toContain("a-value-of-its-own");
});

test("[FN16] hooks of plugins concern no other request", async () => {
  expect((await platform.get(`${BASE}/open`)).headers.get("x-hook")).toBe("1");
  expect((await platform.get("/api/health")).headers.get("x-hook")).toBeNull();
  expect((await platform.get(`${BASE}/early`)).body).toEqual({ text: "early" });
  expect((await platform.get("/api/health?early")).body).not.toEqual({ text: "early" });
});

test("[FN17] a form cannot ask for a list of a billion entries", async () => {
  const send = async (name: string, count = 1) => {
    const form = new FormData();
    for (let index = 0; index < count; index++) form.append(count === 1 ? name : `${name}${index}`, "1");
    return (await platform.fetch(`${BASE}/form`, { method: "POST", body: form })).status;
  };
  expect(await send("items[3].a")).toBe(200);
  expect(await send("items[4000000000].a")).toBe(400);
  expect(await send("field", 1_001)).toBe(400);
});

test("[FN15] the OpenAPI document has the routes for those who may see the schema", async () => {
  const routes = `(api) => api
    .post("/orders/:id", ({ body }) => body, { body: t.Object({ n: t.Number() }), response: t.Object({ n: t.Number() }), detail: { summary: "Order" } })
    .get("/open", () => "x", { access: true })
    .get("/hidden", () => "x", { detail: { hide: true } })`;
  const config = (endpoint: string) =>
    `import { defineConfig } from "platform";\nimport { t } from "elysia";\nexport default defineConfig({ api: { schemaEndpoint: ${endpoint} }, routes: ${routes} });`;
  const own = await testPlatform({ config: config('"authenticated"') });
  try {
    const hidden = await own.get<{ paths: Record<string, unknown> }>("/swagger/json");
    expect(Object.keys(hidden.body.paths).filter((path) => path.startsWith(BASE))).toEqual([]);
    await own.restart({ config: config("true") });
    const { body } = await own.get<{ paths: Record<string, Record<string, Record<string, unknown>>> }>("/swagger/json");
    const shown = Object.entries(body.paths).filter(([path]) => path.startsWith(BASE));
    expect(shown.map(([path]) => path).sort()).toEqual([`${BASE}/open`, `${BASE}/orders/{id}`]);
    const operation = body.paths[`${BASE}/orders/{id}`]?.["post"];
    expect(operation).toMatchObject({
      summary: "Order",
      tags: ["Functions"],
      security: [{ bearer: [] }, { serviceKey: [] }],
      responses: { 200: {}, 400: {}, 401: {}, 403: {}, 500: {} },
    });
    expect(JSON.stringify(operation?.["requestBody"])).toContain('"n":{"type":"number"}');
    expect(body.paths[`${BASE}/open`]?.["get"]?.["security"]).toContainEqual({});
  } finally {
    await own.stop();
  }
});

test("[FN16] a hook that replaces the request makes it a 500", async () => {
  const config = `import { defineConfig } from "platform";
    export default defineConfig({ routes: (api) => api
      .onRequest((context) => { context.request = new Request(context.request.url, { headers: { authorization: "Bearer x" } }) })
      .get("/a", () => "x", { access: true }) });`;
  const own = await testPlatform({ config });
  try {
    expect((await own.get(`${BASE}/a`)).status).toBe(500);
    expect((await own.get("/api/health")).status).toBe(200);
  } finally {
    await own.stop();
  }
});

test("[FN18] a server whose routes cannot be made does not start", async () => {
  const start = (routes: string) =>
    testPlatform({
      config: `import { defineConfig } from "platform";\nexport default defineConfig({ routes: ${routes} });`,
    });
  await expect(start('() => { throw new Error("no routes today") }')).rejects.toThrow("no routes today");
  await expect(start('(api) => api.use(import("./missing.ts"))')).rejects.toThrow("missing.ts");
  await expect(start('"/checkout"')).rejects.toThrow("routes: must be a function");
});

test("[FN8] a refused value is in no error that the config's code sees", async () => {
  const own = await testPlatform({
    config: `
import { defineConfig } from "platform";
import { t } from "elysia";
export default defineConfig({ routes: (api) => api.onError(({ error, code }) => code === "VALIDATION" ? { message: error.message, first: error.all[0].path } : undefined)
  .post("/typed", ({ body }) => body, { access: true, body: t.Object({ n: t.Number(), own: t.Optional(t.Number({ error: "mine" })) }) }) });`,
  });
  try {
    const message = '{"type":"validation","on":"body"}';
    const ask = (body: Record<string, string | number>) => own.post(`${BASE}/typed`, body);
    expect((await ask({ n: "a secret value" })).body).toEqual({ message, first: "/n" } as never);
    expect((await ask({ n: 1, other: "a secret value" })).body).toEqual({ message, first: "/other" } as never);
    expect((await ask({ n: 1, own: "a secret value" })).body).toEqual({ message: "mine", first: "/own" } as never);
  } finally {
    await own.stop();
  }
});
