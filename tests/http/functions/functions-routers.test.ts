import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

/** `hook`: a plugin's hook that concerns every request, so that no route can be left to Bun's router. */
const config = (hook: string): string => `
import { defineConfig, Refusal } from "platform";
import { Elysia, t } from "elysia";
const ok = { access: true };
export default defineConfig({
  server: { maxBodySize: 200_000 },
  serviceKeys: { caller: { key: "a-service-key-for-the-routes-items-only", scopes: ["functions:*:items:call"] } },
  routes: (api) => api
    .decorate("tool", { name: "hammer" })
    .derive(({ path, url }) => ({ seenPath: path, seen: url.includes("/api/functions/") }))
    .get("/items/:id", ({ params, path, query, auth, serviceKey, tool, seenPath, seen, route, server }) =>
      ({ params, path, query, auth: auth?.id ?? null, serviceKey, tool, seenPath, seen, route, server: typeof server?.upgrade }), ok)
    .get("/items/special", () => ({ special: true }), ok)
    .post("/items/special", () => ({ special: "by POST" }), ok)
    .put("/items/:id", ({ params, set }) => { set.status = 201; return params }, ok)
    .delete("/items/:id", ({ status }) => status(204), ok)
    .get("/closed/:id", ({ params }) => params)
    .get("/mine/:id", ({ params }) => params, { access: (auth, { params }) => auth?.id === params.id })
    .get("/a/:x/c", ({ params }) => ({ at: "a/:x/c", ...params }), ok).get("/a/b/:y", ({ params }) => ({ at: "a/b/:y", ...params }), ok)
    .get("/maybe/:id?", ({ params }) => params, ok).get("/maybe/known", () => "known", ok)
    .get("/rest/*", ({ params }) => params, ok).get("/rest/:one/two", ({ params }) => ({ two: params }), ok)
    .all("/any/:id", ({ params, request }) => ({ any: params, method: request.method }), ok).get("/any/:id/more", ({ params }) => params, ok)
    .all("/both", ({ request }) => ({ all: request.method }), ok).get("/both", () => ({ get: true }), ok)
    .get("/caf\u00e9/:id", ({ params }) => params, ok)
    .get("/spread/:id", ({ body, ...rest }) => ({ path: rest.path, id: rest.params.id, qi: rest.qi, isAddress: rest.address !== "" }), ok)
    .get("/text", () => "text", ok).get("/static", "static", ok).get("/number", () => 7, ok).get("/nothing", () => undefined, ok)
    .get("/list", () => [1, 2], ok).get("/null", () => null, ok).get("/class", () => new (class Own { a = 1 })(), ok)
    .get("/own", ({ set }) => { set.headers["x-own"] = "1"; set.headers["vary"] = "Accept"; return { own: true } }, ok)
    .get("/response", ({ set }) => { set.headers["x-own"] = "1"; return new Response("<p>", { headers: { "content-type": "text/html" } }) }, ok)
    .get("/moved", ({ redirect }) => redirect("/elsewhere"), ok)
    .get("/cookie", ({ cookie: { seen } }) => { seen.value = "yes"; return { ok: true } }, ok)
    .get("/early", () => "late", { access: true, beforeHandle: () => ({ early: true }) })
    .get("/refuse", () => { throw new Refusal("sold out", { status: 422 }) }, ok)
    .get("/crash", () => { throw new Error("a secret") }, ok)
    .get("/query", ({ query }) => query, { access: true, query: t.Object({ n: t.Number() }) })
    .get("/answer", () => ({ a: 1, secret: 2 }), { access: true, response: t.Object({ a: t.Number() }) })
    .post("/typed", ({ body }) => body, { access: true, body: t.Object({ n: t.Number() }) })
    .post("/bytes", async ({ request }) => ({ bytes: (await request.bytes()).length }), ok)
    .post("/form", ({ body }) => ({ names: Object.keys(body) }), { access: true, body: t.Any() })
    .get("/stream", async function* () { yield "a"; yield "b" }, ok)
    ${hook},
});`;

const HOOK = ".use(new Elysia().onRequest(() => {}))";

let native: TestPlatform;
let elysia: TestPlatform;
let users: [SignedIn, SignedIn];
beforeAll(async () => {
  native = await testPlatform({ config: config("") });
  elysia = await testPlatform({ config: config(HOOK) });
  users = [await signIn(native), await signIn(elysia)];
});
afterAll(() => Promise.all([native.stop(), elysia.stop()]));

type Ask = { path: string; method?: string; body?: string; headers?: Record<string, string> };

async function answerOf(platform: TestPlatform, user: SignedIn, { path, method = "GET", body, headers = {} }: Ask) {
  const token = headers["authorization"] === "own" ? { authorization: `Bearer ${user.token}` } : {};
  const init = { method, headers: { ...headers, ...token }, body: body ?? null, redirect: "manual" as const };
  const answer = await fetch(`${platform.url}/api/functions${path.replace("SELF", user.id)}`, init);
  const shown = Object.fromEntries([...answer.headers].filter(([name]) => name !== "date" && name !== "x-request-id"));
  const text = (await answer.text()).replaceAll(user.id, "SELF");
  return {
    status: answer.status,
    headers: shown,
    text,
    hasId: /^[0-9a-f]{12}-\w+$/.test(answer.headers.get("x-request-id") ?? ""),
  };
}

const JSON_TYPE = { "content-type": "application/json" };
const PATHS = [
  ..."/items/7 /items/7/ /items/ /items /items//7 /items/a%2Fb /items/a%25b /items/%zz /items/%FF /items/%C3%A9 /items/special".split(
    " ",
  ),
  ..."/items/7?x=%zz&y=1 /ITEMS/7 /it%65ms/7 /items/__proto__ /items/7%3Fx /items/a+b /items/a;b /closed/7 /mine/SELF /mine/x".split(
    " ",
  ),
  ..."/a/b/c /a/x/c /a/b/d /a/x/d /maybe/ /maybe /maybe/7 /maybe/known /rest/a /rest/a/b /rest/a/two /rest /any/7 /any/7/more".split(
    " ",
  ),
  ..."/both /caf%C3%A9/7 /spread/7?q=1 /text /static /number /nothing /list /null /class /own /response /moved /cookie /early".split(
    " ",
  ),
  ..."/refuse /crash /query /query?n=1 /query?n=x /answer /stream /none / /text/ /text?x /typed".split(" "),
];

const ASKED: Ask[] = [
  ...PATHS.flatMap((path) => [{ path }, { path, headers: { authorization: "own" } }]),
  ...PATHS.flatMap((path) =>
    ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"].map((method) => ({ path, method })),
  ),
  { path: "/text", headers: { origin: "https://example.com" } },
  { path: "/items/7", headers: { origin: "https://example.com" } },
  { path: "/items/7", headers: { authorization: "Bearer wrong" } },
  { path: "/items/7", headers: { "x-platform-service-key": "a-service-key-for-the-routes-items-only" } },
  { path: "/text", headers: { "x-platform-service-key": "a-service-key-for-the-routes-items-only" } },
  ...['{"n":1}', '{"n":"x"}', '{"n":1,"m":2}', "{", "", `{"n":${"[".repeat(70)}${"]".repeat(70)}}`].map((body) => ({
    path: "/typed",
    method: "POST",
    body,
    headers: JSON_TYPE,
  })),
  { path: "/typed", method: "POST", body: "n=1", headers: { "content-type": "application/x-www-form-urlencoded" } },
  { path: "/form", method: "POST", body: "n=1&m=2", headers: { "content-type": "application/x-www-form-urlencoded" } },
  { path: "/bytes", method: "POST", body: "x".repeat(100_000) },
  { path: "/bytes", method: "POST", body: "x".repeat(300_000) },
];

test("[FN7] [FN13] a route answers in the same way whichever router has found it", async () => {
  for (const asked of ASKED) {
    const [first, second] = [await answerOf(native, users[0], asked), await answerOf(elysia, users[1], asked)];
    expect({ asked, ...first }).toEqual({ asked, ...second });
    expect({ asked, hasId: first.hasId }).toEqual({ asked, hasId: true });
  }
});
