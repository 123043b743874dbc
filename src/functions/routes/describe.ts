import { type AnyElysia, Elysia } from "elysia";
import type { Described } from "../../http/openapi/document.ts";
import { errorAnswer } from "../../http/openapi/errors.ts";
import type { KnownRoutes, RouteOptions } from "./guarded.ts";

const TAG = "Functions";
const ERRORS = [400, 413, 429, 500, 503];
const ERRORS_OF_CREDENTIALS = [401, 403];
const ANYBODY = [{}];
const CALLERS = [{ bearer: [] }, { serviceKey: [] }];
const SCHEMAS = ["body", "query", "params", "headers", "response"] as const;

interface Operation {
  tags?: string[];
  security?: object[];
  responses?: Record<string, unknown>;
}

/** The routes in OpenAPI's form, written by Elysia's plugin from a copy of them that does nothing. */
export async function describeRoutes(api: AnyElysia, known: KnownRoutes): Promise<Described> {
  const { swagger } = await import("@elysiajs/swagger");
  const copy = new Elysia({ normalize: false }).model(modelsOf(api));
  for (const { method, path, hooks } of api.routes) {
    if (method === "WS" || method === "ALL" || hooks.detail?.hide === true) continue;
    const schemas = SCHEMAS.map((name) => [name, hooks[name]]).filter(([, schema]) => isWritable(schema));
    copy.route(method, path, () => "", { ...Object.fromEntries(schemas), detail: { ...hooks.detail } });
  }
  const answer = await copy.use(swagger({ path: "/swagger" })).handle(new Request("http://localhost/swagger/json"));
  const { paths, components } = (await answer.json()) as {
    paths: Record<string, Record<string, Operation>>;
    components?: { schemas?: Record<string, object> };
  };
  const byDocumented = new Map([...known.values()].map((route) => [documentedKey(route), route]));
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      complete(operation, byDocumented.get(`${method} ${path}`));
    }
  }
  return { paths, schemas: components?.schemas ?? {} };
}

const modelsOf = (api: AnyElysia) =>
  (api as unknown as { definitions: { type: Parameters<AnyElysia["model"]>[0] } }).definitions.type;

/** Schemas of other libraries are no JSON Schema. */
function isWritable(schema: unknown): boolean {
  return schema !== undefined && !(typeof schema === "object" && schema !== null && "~standard" in schema);
}

const documentedKey = ({ method, pattern }: RouteOptions): string =>
  `${method.toLowerCase()} ${pattern.replace(/:(\w+)\??/g, "{$1}")}`;

function complete(operation: Operation, route: RouteOptions | undefined): void {
  operation.tags ??= [TAG];
  // A rule may allow callers without credentials as well.
  const needsCredentials = route === undefined || route.access.length === 0;
  operation.security ??= needsCredentials ? CALLERS : [...ANYBODY, ...CALLERS];
  operation.responses ??= {};
  if (Object.keys(operation.responses).length === 0) operation.responses["200"] = { description: "The answer" };
  for (const status of [...ERRORS, ...ERRORS_OF_CREDENTIALS]) operation.responses[status] ??= errorAnswer(status);
}
