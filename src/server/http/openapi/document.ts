import { isJsonObject } from "../../../kernel/json/json.ts";
import { VERSION } from "../../../kernel/version.ts";
import type { Principal } from "../../access/principal.ts";
import { maySeeSchema, type SchemaEndpoint } from "../../access/service-key-right.ts";
import type { Endpoint } from "../endpoint.ts";
import { methodOf } from "../wide-paths.ts";
import { ERROR_SCHEMA } from "./errors.ts";
import { documentedPath, operationIdOf, operationOf } from "./operation.ts";

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
  { name: "Jobs", description: "Durable background jobs, for service keys" },
  { name: "Analytics", description: "Events and requests" },
  { name: "Functions", description: "Routes of this server's config" },
  { name: "System", description: "Health, schema, public configuration" },
];

/** The declared tables in OpenAPI's form, where `api.schemaEndpoint` exposes them. */
export interface DeclaredTables {
  schemaEndpoint: SchemaEndpoint;
  describe(): Described;
}

/** A part of the document. */
export interface Described {
  paths: Record<string, object>;
  schemas: Record<string, object>;
}

export interface ApiDocument {
  /** Whether credentials affect the content of the document. */
  caller: "open" | "public";
  /** Returns the OpenAPI document as JSON text. */
  jsonFor(principal: Principal): Promise<string>;
}

/** Creates the OpenAPI document of the served endpoints; it is built on the first request. */
export function createApiDocument(deps: {
  endpoints: readonly Endpoint[];
  tables?: DeclaredTables;
  /** The routes of the config, for callers who may see the tables. */
  functions?: (() => Promise<Described>) | undefined;
}): ApiDocument {
  const schemaEndpoint = deps.tables?.schemaEndpoint ?? false;
  const written = new Map<boolean, Promise<string>>();
  return {
    caller: schemaEndpoint === "authenticated" ? "public" : "open",
    jsonFor(principal) {
      const hasTables = maySeeSchema(principal, schemaEndpoint);
      const text = written.get(hasTables) ?? writeDocument(deps, hasTables);
      written.set(hasTables, text);
      return text;
    },
  };
}

async function writeDocument(
  { endpoints, tables, functions }: Parameters<typeof createApiDocument>[0],
  hasTables: boolean,
): Promise<string> {
  const declared = hasTables ? tables?.describe() : undefined;
  const ofConfig = hasTables ? await functions?.() : undefined;
  const documented = endpoints.filter(({ declaration }) => declaration.isDocumented !== false);
  const described = {
    // 3.1 accepts JSON Schema unchanged: null, const and patterns of property names included.
    openapi: "3.1.0",
    info: { title: "Platform", version: VERSION, description: "A whole backend in one executable." },
    tags: TAGS,
    paths: { ...pathsOf(documented), ...declared?.paths, ...ofConfig?.paths },
    components: {
      schemas: { ...ofConfig?.schemas, Error: ERROR_SCHEMA, ...declared?.schemas },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" },
        serviceKey: { type: "apiKey", in: "header", name: "X-Platform-Service-Key" },
      },
    },
  };
  return JSON.stringify(described, (_, value: unknown) => forGenerators(value));
}

/** Returns a schema in the words that generators of clients know: `additionalProperties` for any name, `enum` for constants. */
function forGenerators(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const { patternProperties, anyOf, ...others } = value;
  if (isJsonObject(patternProperties) && others["properties"] === undefined) {
    const [[pattern, schema] = [], ...more] = Object.entries(patternProperties);
    if (pattern === ANY_NAME && more.length === 0) return { ...others, additionalProperties: schema };
  }
  if (!Array.isArray(anyOf) || others["type"] !== undefined) return value;
  const constants = anyOf.flatMap((one) =>
    isJsonObject(one) && one["type"] === "string" && "const" in one && Object.keys(one).length === 2
      ? [one["const"]]
      : [],
  );
  return constants.length === 0 || constants.length < anyOf.length
    ? value
    : { ...others, type: "string", enum: constants };
}

/** Pattern of TypeBox's records. */
const ANY_NAME = "^.*$";

function pathsOf(endpoints: readonly Endpoint[]): Record<string, Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const endpoint of endpoints) {
    const methods = paths[documentedPath(endpoint)] ?? {};
    methods[methodOf(endpoint.route).toLowerCase()] = {
      ...operationOf(endpoint),
      operationId: operationIdOf(endpoint),
    };
    paths[documentedPath(endpoint)] = methods;
  }
  return paths;
}
