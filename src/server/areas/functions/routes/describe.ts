import { type AnyElysia, Elysia } from "elysia";
import type { Described } from "../../../http/openapi/document.ts";
import { errorAnswer } from "../../../http/openapi/errors.ts";
import type { RouteOptions } from "../requests/performing.ts";
import { Part } from "../values/part.ts";
import type { KnownRoutes } from "./guarded.ts";

const TAG = "Functions";
const ERRORS = [400, 413, 429, 500, 503];
const ERRORS_OF_CREDENTIALS = [401, 403];
const ANYBODY = [{}];
const CALLERS = [{ bearer: [] }, { serviceKey: [] }];
const SCHEMAS = "#/components/schemas/";
const PARTS = ["body", "query", "params", "headers", "response"] as const;

interface Answer {
  description?: string | undefined;
  headers?: object | undefined;
  content?: object | undefined;
  links?: object | undefined;
}

interface Operation {
  tags?: string[];
  security?: object[];
  responses?: Record<string, Answer>;
}

/** Describes the routes in OpenAPI's form, written by Elysia's plugin from a copy of them that does nothing. */
export async function describeRoutes(api: AnyElysia, known: KnownRoutes): Promise<Described> {
  const { swagger } = await import("@elysiajs/swagger");
  const copy = new Elysia({ normalize: false }).model(modelsOf(api));
  for (const { method, path, hooks } of api.routes) {
    if (method === "WS" || method === "ALL" || hooks.detail?.hide === true) continue;
    const schemas = PARTS.map((name) => [name, declaredOf(hooks[name])] as const).filter(([, one]) => isWritable(one));
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
  const schemas: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(components?.schemas ?? {}))
    schemas[name] ??= byReference(schema, schemas, name);
  return { paths: byReference(paths, schemas) as Described["paths"], schemas: schemas as Described["schemas"] };
}

const modelsOf = (api: AnyElysia) =>
  (api as unknown as { definitions: { type: Parameters<AnyElysia["model"]>[0] } }).definitions.type;

const declaredOf = (schema: unknown): unknown => (schema instanceof Part ? schema.declared : schema);

/**
 * Copies a value so that named schemas, such as recursive ones, become references to `schemas`, where they are added. `own`: the
 * name of the schema being copied.
 */
function byReference(value: unknown, schemas: Record<string, unknown>, own: string | null = null): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => byReference(one, schemas));
  const { $id, ...members } = value as Record<string, unknown>;
  if (typeof $id === "string" && own === null) {
    // The name comes first: the schema may contain itself.
    if (!Object.hasOwn(schemas, $id)) {
      schemas[$id] = null;
      schemas[$id] = byReference(value, schemas, $id);
    }
    return { $ref: `${SCHEMAS}${$id}` };
  }
  const { $ref } = members;
  if (typeof $ref === "string" && !$ref.startsWith("#")) return { ...members, $ref: `${SCHEMAS}${$ref}` };
  return Object.fromEntries(Object.entries(members).map(([name, one]) => [name, byReference(one, schemas)]));
}

/** Whether a schema can be written: those of other libraries are no JSON Schema. */
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
  // The plugin omits answers without a schema, and for an answer with a model also writes members of the model.
  for (const [status, { description = "The answer", headers, content, links }] of Object.entries(operation.responses)) {
    operation.responses[status] = { description, headers, content, links };
  }
  for (const status of [...ERRORS, ...ERRORS_OF_CREDENTIALS]) operation.responses[status] ??= errorAnswer(status);
}
