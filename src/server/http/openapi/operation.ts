import { type TSchema, Type } from "typebox";
import type { Answer, Caller, Endpoint } from "../endpoint.ts";
import { methodOf, pathOf } from "../wide-paths.ts";
import { errorAnswer } from "./errors.ts";

const SECURITY: Readonly<Record<Caller, readonly object[]>> = {
  open: [{}],
  public: [{}],
  rules: [{}, { bearer: [] }, { serviceKey: [] }],
  caller: [{ bearer: [] }, { serviceKey: [] }],
  user: [{ bearer: [] }],
  serviceKey: [{ serviceKey: [] }],
};

/** Returns the OpenAPI operation of an endpoint. */
export function operationOf({ route, declaration }: Endpoint): Record<string, unknown> {
  const { tag, summary, description, caller, body, rawBody, formBody, isBodyOptional = false } = declaration;
  return {
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: SECURITY[caller],
    parameters: parametersOf(declaration),
    ...(body === undefined
      ? {}
      : { requestBody: requestBody({ "application/json": body, [FORM]: formBody }, isBodyOptional) }),
    ...(rawBody === undefined ? {} : { requestBody: requestBody({ [rawBody.contentType]: rawBody.schema }, false) }),
    responses: responsesOf(methodOf(route), declaration),
  };
}

/** Returns the path in OpenAPI's form: `/api/kv/{namespace}`. */
export const documentedPath = (endpoint: Endpoint): string => pathOf(endpoint.route).replace(/:(\w+)\+?/g, "{$1}");

/** Names the operation as Elysia's plugin does, in letters and digits: `getApiStorageByBucketByKeyMetadata`. */
export function operationIdOf(endpoint: Endpoint): string {
  const words = documentedPath(endpoint)
    .split("/")
    .filter((word) => word !== "");
  const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
  const named = words.map((word) => (word.startsWith("{") ? `By${capitalized(word.slice(1, -1))}` : capitalized(word)));
  return (
    methodOf(endpoint.route).toLowerCase() +
    named.join("").replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
  );
}

function parametersOf({ path = {}, query = {}, otherQuery, headers = [] }: Endpoint["declaration"]): object[] {
  const ofPath = Object.entries(path).map(([name, description]) => {
    return { name, in: "path", required: true, description, schema: { type: "string" } };
  });
  const ofQuery = Object.entries(query).map(([name, schema]) => {
    // The schema's description becomes the parameter's.
    const { description, ...bare } = schema as TSchema & { description?: string };
    const described = description === undefined ? {} : { description };
    return { name, in: "query", required: !Type.IsOptional(schema), ...described, schema: bare };
  });
  const ofOthers = otherQuery === undefined ? [] : [anyParameters(otherQuery)];
  const ofHeaders = headers.map((header) => ({ ...header, in: "header", required: false, schema: { type: "string" } }));
  return [...ofPath, ...ofQuery, ...ofOthers, ...ofHeaders];
}

/** Returns OpenAPI's form for parameters of any name: an object whose members are parameters. */
function anyParameters(description: string): object {
  const schema = Type.Record(Type.String(), Type.String());
  return { name: "others", in: "query", required: false, description, style: "form", explode: true, schema };
}

const FORM = "multipart/form-data";

/** Returns a body that has one of several content types. */
function requestBody(schemas: Readonly<Record<string, TSchema | undefined>>, isOptional: boolean): object {
  const known = Object.entries(schemas).filter(([, schema]) => schema !== undefined);
  return { required: !isOptional, content: Object.fromEntries(known.map(([type, schema]) => [type, { schema }])) };
}

function responsesOf(method: string, declaration: Endpoint["declaration"]): Record<string, unknown> {
  const { answers, errors = [], caller, query, body, rawBody } = declaration;
  const responses: Record<string, unknown> = {};
  for (const [status, answer] of Object.entries(answers)) responses[status] = responseOf(answer);
  const ofQueries = query === undefined ? [] : [400];
  const ofBodies = body === undefined && rawBody === undefined ? [] : [400, 413, 415];
  const ofCredentials = caller === "open" ? [] : [401, 403];
  // Every write may fail on a full disk.
  const ofWrites = method === "GET" || method === "HEAD" ? [] : [507];
  for (const status of [...errors, ...ofQueries, ...ofBodies, ...ofCredentials, ...ofWrites, 429, 500]) {
    responses[status] ??= errorAnswer(status);
  }
  return responses;
}

function responseOf(answer: Answer): object {
  const isSchema = !("description" in answer && ("schema" in answer || Object.keys(answer).length === 1));
  if (isSchema) return jsonResponse(answer as TSchema, "application/json");
  const { description, schema, contentType = "application/json" } = answer as Exclude<Answer, TSchema>;
  return schema === undefined ? { description } : { ...jsonResponse(schema, contentType), description };
}

function jsonResponse(schema: TSchema, contentType: string): object {
  const { description = "The result" } = schema as { description?: string };
  return { description, content: { [contentType]: { schema } } };
}
