import { type TSchema, Type } from "typebox";
import type { KnownParameters } from "./query.ts";

/** An error body; descriptions refer to it by its name, `Error`. Spec: Errors. */
export const ERROR_SCHEMA = Type.Object({
  code: Type.Integer({ description: "The HTTP status" }),
  message: Type.String(),
  data: Type.Optional(
    Type.Record(Type.String(), Type.Object({ code: Type.String(), message: Type.String() }), {
      description: "The fields at fault",
    }),
  ),
});

const ERROR_TEXTS: Readonly<Record<number, string>> = {
  400: "Bad request or validation failure",
  401: "Authentication required",
  403: "Access denied",
  404: "Not found",
  405: "Method not allowed",
  408: "Took too long",
  409: "Conflict",
  413: "Too large",
  415: "Unsupported media type",
  416: "Range not satisfiable",
  429: "Rate limit exceeded",
  500: "Internal error",
  502: "Another server failed",
  503: "Unavailable",
  507: "Insufficient storage",
};

export interface OperationParameter {
  name: string;
  description?: string;
  required?: boolean;
  schema?: TSchema;
}

interface OperationOptions {
  tag: string;
  summary: string;
  description?: string;
  /**
   * Who may call: anybody, with credentials not looked at (`open`) or refused when they do not hold (`public`), a `user`, a
   * `serviceKey`, a `caller` (either), or anybody by `rules`.
   */
  security: "open" | "public" | "user" | "serviceKey" | "caller" | "rules";
  /** Path parameters with their meaning; each is a required string. */
  path?: Readonly<Record<string, string>>;
  /** The query parameters that the route takes: any other is 400. */
  query?: readonly OperationParameter[];
  /** Where others, out of our hands, add parameters of their own: what those are. Nothing is refused then. */
  otherQuery?: string;
  headers?: readonly OperationParameter[];
  /** `isOptional`: a request may come without. */
  body?: { schema: TSchema; contentType?: string; isOptional?: boolean };
  /** Answers by status: a schema is JSON. */
  answers: Readonly<Record<number, { description: string; schema?: TSchema; contentType?: string }>>;
  /**
   * Statuses that come with an error body. 429 and 500 are everywhere, 401 and 403 (a service key out of place) wherever
   * credentials are looked at, 400, 413 and 415 wherever there is a body, 507 at every method but GET.
   */
  errors: readonly number[];
  /** Where the description belongs when the route's own path is wider, as `/files/*` is. */
  at?: string;
  /** What a wide route does besides, each told as an endpoint of its own. */
  also?: readonly (OperationOptions & { method: "GET" | "HEAD"; at: string })[];
}

/** The member of `detail` that says where descriptions belong; it is taken out before the document is made. */
export const PLACES = "x-places";

/** The name that stands for parameters of any name. */
const OTHERS = "*";

export interface Places {
  /** null: the route's own path. */
  at: string | null;
  also: readonly { method: string; at: string; detail: Record<string, unknown> }[];
}

const SECURITY = {
  open: [{}],
  public: [{}],
  user: [{ bearer: [] }],
  serviceKey: [{ serviceKey: [] }],
  caller: [{ bearer: [] }, { serviceKey: [] }],
  rules: [{}, { bearer: [] }, { serviceKey: [] }],
};

/** The OpenAPI description of a route, for Elysia's `detail`. It documents; parsing is the area's own. */
export function operation(options: OperationOptions): { detail: Record<string, unknown> } {
  const also = (options.also ?? []).map((one) => ({ method: one.method, at: one.at, detail: describe(one) }));
  const places: Places = { at: options.at ?? null, also };
  return { detail: { ...describe(options), [PLACES]: places } };
}

/** In OpenAPI's words: an object whose members are parameters, whatever their names. */
const anyParameters = (description: string): Record<string, unknown> => ({
  ...{ name: OTHERS, in: "query", required: false, description, style: "form", explode: true },
  schema: Type.Record(Type.String(), Type.String()),
});

/**
 * The query parameters that a described route takes, read from the description itself; null: any. A wide route takes those
 * of everything that it does.
 */
export function queryParametersOf(detail: Readonly<Record<string, unknown>>): KnownParameters {
  // Both were put there by `operation`.
  const { parameters = [], [PLACES]: places } = detail as {
    parameters?: { name: string; in: string }[];
    [PLACES]?: Places;
  };
  const known = new Set(parameters.filter((one) => one.in === "query").map((one) => one.name));
  if (known.has(OTHERS)) return null;
  for (const { detail: other } of places?.also ?? []) {
    for (const name of queryParametersOf(other) ?? []) known.add(name);
  }
  return known;
}

export function errorAnswer(status: number): Record<string, unknown> {
  return {
    description: ERROR_TEXTS[status] ?? "Error",
    content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
  };
}

function describe(options: OperationOptions): Record<string, unknown> {
  const parameter = (place: string, required: boolean) => (one: OperationParameter) => ({
    name: one.name,
    in: place,
    required: one.required ?? required,
    ...(one.description === undefined ? {} : { description: one.description }),
    schema: one.schema ?? Type.String(),
  });
  const path = Object.entries(options.path ?? {}).map(([name, description]) => ({ name, description }));
  const responses: Record<string, unknown> = {};
  for (const [status, answer] of Object.entries(options.answers)) {
    responses[status] =
      answer.schema === undefined
        ? { description: answer.description }
        : {
            description: answer.description,
            content: { [answer.contentType ?? "application/json"]: { schema: answer.schema } },
          };
  }
  const ofBodies = options.body === undefined ? [] : [400, 413, 415];
  const ofCredentials = options.security === "open" ? [] : [401, 403];
  for (const status of [...options.errors, ...ofBodies, ...ofCredentials, 429, 500]) {
    responses[status] ??= errorAnswer(status);
  }
  return {
    tags: [options.tag],
    summary: options.summary,
    ...(options.description === undefined ? {} : { description: options.description }),
    security: SECURITY[options.security],
    parameters: [
      ...path.map(parameter("path", true)),
      ...(options.query ?? []).map(parameter("query", false)),
      ...(options.otherQuery === undefined ? [] : [anyParameters(options.otherQuery)]),
      ...(options.headers ?? []).map(parameter("header", false)),
    ],
    ...(options.body === undefined
      ? {}
      : {
          requestBody: {
            required: options.body.isOptional !== true,
            content: { [options.body.contentType ?? "application/json"]: { schema: options.body.schema } },
          },
        }),
    responses,
  };
}
