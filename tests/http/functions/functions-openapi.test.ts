import { expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { testPlatform } from "../../support/index.ts";

const BASE = "/api/functions";

const CONFIG = `
import { defineConfig } from "platform";
import { Elysia, t } from "elysia";
const tree = t.Recursive((This) => t.Object({ name: t.String(), inner: t.Array(This) }));
const own = { "~standard": { version: 1, vendor: "own", validate: (value) => ({ value }) } };
export default defineConfig({
  api: { schemaEndpoint: true },
  routes: (api) => api
    .model({ order: t.Object({ n: t.Number() }), own })
    .get("/plain", () => "x")
    .post("/plain", ({ body }) => body, { access: true })
    .put("/typed/:id", ({ body }) => body, { body: t.Object({ n: t.Number() }), response: t.Object({ n: t.Number() }) })
    .patch("/statuses", ({ status }) => status(201, "x"), { response: { 201: t.String(), 404: t.Object({ why: t.String() }) } })
    .delete("/maybe/:id?", () => "x", { query: t.Object({ force: t.Optional(t.Boolean()) }) })
    .get("/rest/*", ({ params }) => params)
    .get("/two/:a/and/:b", ({ params }) => params, { params: t.Object({ a: t.Integer(), b: t.String({ format: "uuid" }) }) })
    .get("/parts", () => "x", { query: t.Object({ list: t.Array(t.String()), date: t.Date(), n: t.Numeric() }), headers: t.Object({ "x-n": t.Number() }), cookie: t.Cookie({ c: t.String() }) })
    .post("/file", () => "x", { body: t.Object({ file: t.File({ type: "image/png" }), files: t.Files(), meta: t.ObjectString({ a: t.Number() }), tags: t.ArrayString(t.String()) }) })
    .post("/model", ({ body }) => body, { body: "order", response: "order" })
    .post("/own", ({ body }) => body, { body: own })
    .post("/many", ({ body }) => "x", { body: t.Intersect([t.Object({ a: t.Literal("x") }), t.Object({ b: t.Union([t.String(), t.Null()]) })]) })
    .post("/others", ({ body }) => "x", { body: t.Object({ nullable: t.Nullable(t.Number()), maybe: t.MaybeEmpty(t.String()), one: t.UnionEnum(["a", "b"]), record: t.Record(t.String(), t.Number()), tuple: t.Tuple([t.String(), t.Number()]), any: t.Any(), tree }) })
    .post("/text", ({ body }) => body, { parse: "text", body: t.String() })
    .post("/optional", ({ body }) => "x", { body: t.Optional(t.Object({ n: t.Number() })) })
    .post("/form", ({ body }) => "x", { body: t.Form({ a: t.String() }) })
    .get("/stream", async function* () { yield "a" })
    .get("/static", "static")
    .all("/all", () => "x")
    .head("/head", () => "x").options("/options", () => "x")
    .ws("/socket", { body: t.Object({ n: t.Number() }), message() {} })
    .group("/group", (group) => group.guard({ query: t.Object({ q: t.String() }) }, (guarded) => guarded.get("/guarded", () => "x")))
    .guard({ schema: "standalone", query: t.Object({ q: t.String() }) }, (guarded) => guarded.get("/beside", () => "x", { query: t.Object({ r: t.String() }) }))
    .mount("/mounted", () => new Response("x"))
    .use(new Elysia({ prefix: "/plugin" }).get("/", () => "x", { detail: { summary: "Of a plugin", tags: ["Own"] } })),
});`;

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, { description?: string }> }>>;
}

test("[FN15] the document of a config with every kind of route is valid OpenAPI", async () => {
  const platform = await testPlatform({ config: CONFIG });
  try {
    const { body } = await platform.get<Document>("/swagger/json");
    const described = Object.entries(body.paths).filter(([path]) => path.startsWith(BASE));
    expect(described.length).toBe(20);
    expect(await new Validator().validate(structuredClone(body) as never)).toEqual({ valid: true });
    const undescribed = described.flatMap(([path, operations]) =>
      Object.values(operations).flatMap(({ responses }) =>
        Object.entries(responses).flatMap(([status, { description }]) => (description ? [] : [`${path} ${status}`])),
      ),
    );
    expect(undescribed).toEqual([]);
  } finally {
    await platform.stop();
  }
});
