import { swagger } from "@elysiajs/swagger";
import { type AnyElysia, Elysia } from "elysia";
import style from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import script from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import { VERSION } from "../kernel/version.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Http } from "./http.ts";
import { documentedPath, operationIdOf, operationOf } from "./openapi-operation.ts";
import { ERROR_SCHEMA, errorAnswer, PLACES, type Places, queryParametersOf } from "./operation.ts";
import type { KnownParameters } from "./query.ts";
import { pageHeaders } from "./security-headers.ts";
import { isWide, methodOf } from "./wide-paths.ts";

const TAGS = [
  { name: "Tables", description: "Records in tables, grouped into namespaces" },
  { name: "Storage", description: "Files in buckets" },
  { name: "Auth", description: "Users and sign-in" },
  { name: "Administration", description: "Users, for service keys" },
  { name: "Key-value", description: "Values by key" },
  { name: "SQL", description: "Statements on declared databases" },
  { name: "Vectors", description: "Vector indexes" },
  { name: "Rooms", description: "State synchronised over WebSockets" },
  { name: "Realtime", description: "Changes, presence and broadcasts over WebSockets" },
  { name: "Push", description: "Devices, topics and messages" },
  { name: "Analytics", description: "Events and requests" },
  { name: "System", description: "Health, schema, public configuration" },
];

const SCRIPT =
  'SwaggerUIBundle({ url: "/swagger/json", dom_id: "#api", deepLinking: true, displayRequestDuration: true });';

/** Nothing on this page comes from elsewhere: it works on a machine without internet. */
const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Platform API</title>
    <link rel="stylesheet" href="/swagger/ui.css">
    <link rel="icon" href="data:,">
  </head>
  <body>
    <div id="api"></div>
    <script src="/swagger/ui.js"></script>
    <script>${SCRIPT}</script>
  </body>
</html>
`;

/** `/swagger` (page) and `/swagger/json`, made from the descriptions of the routes. Decisions 11. */
export function createApiDocumentation(http: Http, routes: AnyElysia, endpoints: readonly Endpoint[]): AnyElysia {
  const documents = describedRoutes(routes).use(
    swagger({
      path: "/swagger",
      documentation: {
        // 3.1 takes JSON Schema as it is: null, const and patterns of property names included.
        openapi: "3.1.0",
        info: { title: "Platform", version: VERSION, description: "A whole backend in one executable." },
        tags: TAGS,
        // The plugin leaves out paths with a wildcard, which is what the router sees of these.
        // The plugin's types are those of OpenAPI 3.0, where a JSON Schema may say less.
        paths: pathsOf(endpoints.filter(isWide)) as Record<string, object>,
        components: {
          schemas: { Error: ERROR_SCHEMA },
          securitySchemes: {
            bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" },
            serviceKey: { type: "apiKey", in: "header", name: "X-Platform-Service-Key" },
          },
        },
      },
    }),
  );
  const hidden = { detail: { hide: true } };
  const file = (path: string, contentType: string) =>
    http.route(() => new Response(Bun.file(path), { headers: { "content-type": contentType } }), { public: true });
  const page = pageHeaders(SCRIPT);
  // Written once: the routes are the same as long as the process lives.
  let json: Promise<string> | null = null;
  const document = () => {
    json ??= Promise.resolve(documents.fetch(new Request("http://localhost/swagger/json"))).then((answer) =>
      answer.text(),
    );
    return json;
  };
  return new Elysia()
    .get(
      "/swagger",
      http.route(() => new Response(PAGE, { headers: page }), { public: true }),
      hidden,
    )
    .get(
      "/swagger/json",
      http.route(async () => new Response(await document(), { headers: { "content-type": "application/json" } }), {
        public: true,
      }),
      hidden,
    )
    .get("/swagger/ui.js", file(script, "text/javascript"), hidden)
    .get("/swagger/ui.css", file(style, "text/css"), hidden);
}

function pathsOf(endpoints: readonly Endpoint[]): Record<string, Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const endpoint of endpoints) {
    if (endpoint.declaration.isDocumented === false) continue;
    const methods = paths[documentedPath(endpoint)] ?? {};
    methods[methodOf(endpoint.route).toLowerCase()] = {
      ...operationOf(endpoint),
      operationId: operationIdOf(endpoint),
    };
    paths[documentedPath(endpoint)] = methods;
  }
  return paths;
}

/** The query parameters of every described route, by `METHOD PATTERN`. */
export function declaredQueries(routes: AnyElysia): ReadonlyMap<string, KnownParameters> {
  const declared = new Map<string, KnownParameters>();
  for (const { method, path, hooks } of routes.routes) {
    const detail = detailOf(hooks);
    if (detail["responses"] !== undefined) declared.set(`${method} ${path}`, queryParametersOf(detail));
  }
  return declared;
}

/** Made by `operation`, which puts the places there; a route without a description has none. */
type Detail = Record<string, unknown> & { [PLACES]?: Places };
const detailOf = (hooks: { detail?: unknown } | undefined): Detail => (hooks?.detail ?? {}) as Detail;

/**
 * The routes as the document shall name them. The plugin leaves out paths with a wildcard, and keeps the slash that a
 * group's own path ends in.
 */
function describedRoutes(routes: AnyElysia): AnyElysia {
  const described = new Elysia();
  const nothing = () => null;
  for (const { method, path, hooks } of routes.routes) {
    const { [PLACES]: places, ...detail } = detailOf(hooks);
    // Whatever writes may find the disk full, and what is no GET writes.
    if (method !== "GET" && detail["responses"] !== undefined)
      detail["responses"] = { 507: errorAnswer(507), ...(detail["responses"] as object | undefined) };
    described.route(method, (places?.at ?? path).replace(/(?<=.)\/$/, ""), nothing, { detail });
    for (const other of places?.also ?? []) described.route(other.method, other.at, nothing, { detail: other.detail });
  }
  return described;
}
