import { afterAll, beforeAll, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  parameters: { name: string; in: string; required: boolean }[];
  responses: Record<string, { description: string; content?: Record<string, { schema: { $ref?: string } }> }>;
}

interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  tags: { name: string }[];
  components: { schemas: Record<string, { required?: string[] }>; securitySchemes: Record<string, unknown> };
}

// Every area has something declared, so that its paths reach past "there is no such bucket".
const CONFIG = {
  databases: {
    shared: { tables: { posts: { schema: { title: { type: "string" } }, fts: ["title"] } } },
    team: { instance: true, tables: { notes: {} } },
  },
  storage: { buckets: { files: {} } },
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { items: { dimensions: 2 } },
  rooms: { game: {} },
  api: { schemaEndpoint: true },
};

let platform: TestPlatform;
let document: Document;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  document = (await platform.get<Document>("/swagger/json")).body;
});
afterAll(() => platform.stop());

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );

test("[HT12] the document is valid OpenAPI", async () => {
  const result = await new Validator().validate(structuredClone(document) as never);
  expect(result).toEqual({ valid: true });
  const ids = operations().map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

test("[HT12] every endpoint of the interface is described", () => {
  const described = new Set(operations().map(({ path, method }) => `${method} ${path.replace(/\{[^}]+\}/g, "*")}`));
  const tables = ["/api/db/*/tables/*", "/api/db/*/*/tables/*"].flatMap((base) => [
    ...["", "/count", "/search", "/*"].map((rest) => `GET ${base}${rest}`),
    ...["", "/batch", "/batch-by-filter"].map((rest) => `POST ${base}${rest}`),
    ...[`PATCH ${base}/*`, `DELETE ${base}/*`],
  ]);
  const posts = (base: string, names: string) => names.split(" ").map((name) => `POST ${base}/${name}`);
  const wanted = [
    ...tables,
    ...["GET /api/storage/*", "GET /api/storage/*/*", "HEAD /api/storage/*/*", "DELETE /api/storage/*/*"],
    ...["GET /api/storage/*/*/metadata", "PATCH /api/storage/*/*/metadata", "PUT /api/storage/*/*"],
    "GET /api/storage/*/uploads/*/parts",
    ...posts("/api/storage/*", "upload delete-batch signed-url signed-urls signed-upload-url"),
    ...posts("/api/storage/*/multipart", "create upload-part complete abort"),
    ...["GET /api/auth/admin/users", "POST /api/auth/admin/users", "GET /api/auth/admin/users/*"],
    ...["PATCH /api/auth/admin/users/*", "DELETE /api/auth/admin/users/*", "PUT /api/auth/admin/users/*/claims"],
    ...["POST /api/auth/admin/users/*/revoke", "DELETE /api/auth/admin/users/*/mfa"],
    "POST /api/admin/auth/users/import",
    ...posts("/api/auth", "signup signin refresh signout"),
    ...["POST /api/kv/*", "POST /api/d1/*", "POST /api/vectorize/*"],
    ...["GET /api/room", "GET /api/room/metadata", "GET /api/realtime", "POST /api/realtime/broadcast"],
    ...posts("/api/push", "register unregister topic/subscribe topic/unsubscribe send send-many send-to-token"),
    ...["POST /api/push/send-to-topic", "POST /api/push/broadcast", "PATCH /api/push/tokens"],
    ...["GET /api/push/tokens", "GET /api/push/logs"],
    ...["POST /api/analytics/track", "GET /api/analytics/query", "GET /api/analytics/events"],
    ...["GET /api/health", "GET /api/config", "GET /api/schema", "GET /metrics"],
  ];
  expect(wanted.filter((one) => !described.has(one))).toEqual([]);
});

test("[HT12] each described path and method exists", async () => {
  const names: Record<string, string> = {
    namespace: "shared",
    table: "posts",
    bucket: "files",
    database: "main",
    index: "items",
    provider: "nobody",
  };
  const wrong: string[] = [];
  for (const { path, method } of operations()) {
    const isDynamic = path.includes("{instance}");
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      if (isDynamic && name === "namespace") return "team";
      if (isDynamic && name === "table") return "notes";
      if (path.startsWith("/api/kv/")) return "cache";
      return names[name] ?? "x";
    });
    const response = await platform.fetch(filled, { method });
    const text = await response.text();
    // A missing record or file is a 404 as well, but it speaks of that, not of the path.
    if (response.status === 405 || text.includes("There is nothing at")) wrong.push(`${method} ${filled}: ${text}`);
  }
  expect(wrong).toEqual([]);
});

test("[HT12] each operation has an answer that is no error, and errors of the common shape", () => {
  const wrong: string[] = [];
  const tags = new Set(document.tags.map(({ name }) => name));
  for (const { path, method, operation } of operations()) {
    const at = `${method} ${path}`;
    const statuses = Object.keys(operation.responses).map(Number);
    if (!statuses.some((status) => status < 400)) wrong.push(`${at} has no answer`);
    if (operation.summary === "" || !operation.tags.every((tag) => tags.has(tag))) wrong.push(`${at} has no name`);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const described = operation.parameters.filter((one) => one.in === "path").map((one) => one.name);
    if (inPath.sort().join() !== described.sort().join()) wrong.push(`${at} describes ${described.join()}`);
    for (const [status, { content }] of Object.entries(operation.responses)) {
      const reference = content?.["application/json"]?.schema.$ref;
      // Health that is not well is an answer, and has the form of one.
      if (at === "GET /api/health" && status === "503") continue;
      if (Number(status) >= 400 && reference !== "#/components/schemas/Error") wrong.push(`${at} ${status}`);
    }
    if (![429, 500].every((status) => statuses.includes(status))) wrong.push(`${at} lacks 429 or 500`);
  }
  expect(wrong).toEqual([]);
  expect(document.components.schemas["Error"]?.required).toEqual(["code", "message"]);
});

test("[HT13] the page and what it loads come from here", async () => {
  const page = await platform.fetch("/swagger");
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const html = await page.text();
  expect(html).not.toMatch(/(?:https?:)?\/\/[a-z]/i);
  const loaded = [...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path = ""]) => path);
  expect(loaded.length).toBeGreaterThanOrEqual(2);
  for (const path of loaded) {
    const response = await platform.fetch(path);
    const text = await response.text();
    expect([path, response.status, text.length > 10_000]).toEqual([path, 200, true]);
    expect(response.headers.get("content-type")).toMatch(path.endsWith(".css") ? /^text\/css/ : /^text\/javascript/);
    // Styles load by url() and @import; neither may lead elsewhere.
    if (path.endsWith(".css")) expect(text).not.toMatch(/(?:url\(\s*["']?|@import\s+["'])(?:https?:)?\/\//);
  }
});

test("[HT12] with `api.docs: false` there is neither document nor page", async () => {
  const silent = await testPlatform({ config: { api: { docs: false } } });
  for (const path of ["/swagger", "/swagger/json", "/swagger/ui.js", "/swagger/ui.css"]) {
    expect([path, (await silent.get(path)).status]).toEqual([path, 404]);
  }
  expect((await silent.get("/api/health")).status).toBe(200);
  await silent.stop();
});
