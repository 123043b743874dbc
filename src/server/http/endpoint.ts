import { type Static, type TObject, type TProperties, type TSchema, Type } from "typebox";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Principal } from "../access/principal.ts";
import type { RequestBasics } from "./exchange/request-context.ts";
import type { RateLimiter } from "./rate-limit.ts";

export type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
/** A method and a path. `:name` is one segment of the path; `:name+` is one or more, in the last place or before a fixed ending. */
export type Route = `${Method} /${string}`;

/**
 * Callers of an endpoint:
 * - `open`: anybody; credentials are ignored;
 * - `public`: anybody; credentials that are not valid are refused;
 * - `rules`: what the config's rules allow;
 * - `caller`: a user or a service key, checked by the handler;
 * - `user`: a signed-in user, else 401, before the handler runs;
 * - `serviceKey`: any service key, else 401, before the handler runs; its scopes are checked by the handler.
 */
export type Caller = "open" | "public" | "rules" | "caller" | "user" | "serviceKey";

/**
 * Place of an endpoint's data:
 * - `core`: in the server's own files, such as accounts, jobs and the audit log;
 * - `namespace`: in the file of one namespace of tables, keys, vectors or SQL;
 * - `instance`: in the file of one instance of a dynamic namespace;
 * - `bucket`: in one bucket of files, whose records are in a file of the server;
 * - `room`: in one room;
 * - `none`: in no file that a request could change, such as health, pages and the state of connections.
 */
export type Place = "core" | "namespace" | "instance" | "bucket" | "room" | "none";

type PrincipalOf<C extends Caller> = C extends "user"
  ? Extract<Principal, { kind: "user" }>
  : C extends "serviceKey"
    ? Extract<Principal, { kind: "serviceKey" | "server" }>
    : Principal;

/** The parameters of a path: `"/api/kv/:namespace"` has `namespace`. */
export type ParametersOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? BareName<Name> | ParametersOf<Rest>
  : Path extends `${string}:${infer Name}`
    ? BareName<Name>
    : never;
type BareName<Name extends string> = Name extends `${infer Bare}+` ? Bare : Name;

/** An answer: a schema means JSON, with its description as the answer's. */
export type Answer = TSchema | { description: string; schema?: TSchema; contentType?: string };

interface HeaderParameter {
  name: string;
  description?: string;
}

export interface Declaration<Name extends string, C extends Caller, Query extends TProperties, Body extends TSchema> {
  tag: string;
  summary: string;
  description?: string;
  caller: C;
  place: Place;
  /** The query parameter that makes an `open` endpoint check credentials, as a `public` one does. */
  credentialsWith?: string;
  /** A description of each path parameter. */
  path?: Readonly<Record<Name, string>>;
  /** The query parameters: strings, whole numbers, booleans, or unions of constants. Any other parameter is 400. */
  query?: Query;
  /** A description of parameters that a third party adds, such as an OAuth provider. No parameter is refused then. */
  otherQuery?: string;
  headers?: readonly HeaderParameter[];
  /** A JSON body. */
  body?: Body;
  /** Documents a form (multipart/form-data) that the handler takes in place of the JSON body. */
  formBody?: TSchema | undefined;
  /** true: the JSON body may be absent, which counts as `{}`. */
  isBodyOptional?: boolean;
  /** A body of another kind, which the handler reads from the request. */
  rawBody?: { contentType: string; schema: TSchema };
  answers: Readonly<Record<number, Answer>>;
  /**
   * Statuses with an error body. These are implied: 429 and 500; 400 with a query; 400, 413 and 415 with a body; 401 and 403 unless
   * the endpoint is `open`; 507 unless it is a GET.
   */
  errors?: readonly number[];
  /** false: the OpenAPI document omits the endpoint. */
  isDocumented?: boolean;
  /** The maximum size of a JSON body that is small by nature, in bytes; never more than `server.maxBodySize`. */
  bodyMaxBytes?: number;
  /** Counts one request of the client's network, before credentials are checked. Errors: 429. */
  limit?: (network: string) => void;
  /** true: no scope covers the endpoint. A service key with scopes is 403, before any other check. */
  refusesScopedKeys?: boolean;
  /** The status for a service key that is not valid; 401 by default. */
  wrongKeyStatus?: 401 | 403;
  /** Refuses further service keys of a network that has sent wrong ones. Errors: 429. */
  wrongKeys?: Pick<RateLimiter, "check" | "count">;
  /** The status without a service key, where `caller` is `serviceKey`; 401 by default. */
  missingKeyStatus?: 401 | 403;
}

export interface EndpointContext<Name extends string, C extends Caller, Query extends TProperties, Body extends TSchema>
  extends RequestBasics {
  readonly params: Readonly<Record<Name, string>>;
  readonly principal: PrincipalOf<C>;
  /**
   * Returns the query parameters. A handler calls it after the check of rights, even if it takes none: the call refuses unknown
   * ones. Errors: 400 that names each invalid parameter.
   */
  query(): Static<TObject<Query>>;
  /** Returns one raw query parameter before rights are known; null when absent. For one that decides which rights are needed. */
  peek(name: string): string | null;
  /** Returns the raw query, without the question mark. */
  queryText(): string;
  /** Reads the body, and refuses unknown query parameters. Errors: 400 that names each invalid field, 413, 415. */
  body(): Promise<Static<Body>>;
}

/** One endpoint: its handler, the parsers of its requests, and its description in the OpenAPI document. */
export interface Endpoint {
  readonly route: Route;
  readonly declaration: AnyDeclaration;
  // The parser of `declaration` produces the argument of `handle`.
  readonly handle: (context: never) => MaybePromise<unknown>;
}
export type AnyDeclaration = Declaration<string, Caller, TProperties, TSchema>;

/**
 * Declares an endpoint. `handle` returns the value of a 200 JSON answer, a `Reply` with another status or headers, or a `Response`.
 * It checks the rights first, then calls `query()` or `body()`, which validate the request.
 */
export function endpoint<
  const Path extends Route,
  C extends Caller,
  Query extends TProperties = Record<never, never>,
  Body extends TSchema = TSchema,
>(
  route: Path,
  declaration: Declaration<ParametersOf<Path>, C, Query, Body>,
  handle: (context: EndpointContext<ParametersOf<Path>, C, Query, Body>) => MaybePromise<unknown>,
): Endpoint {
  return { route, declaration: declaration as unknown as AnyDeclaration, handle };
}

/** Declaration shared by pages and files, which the OpenAPI document omits. */
export const HIDDEN = {
  tag: "System",
  caller: "open",
  otherQuery: "Anything",
  isDocumented: false,
  answers: { 200: Type.Unknown() },
} satisfies Partial<Declaration<never, "open", Record<never, never>, TSchema>>;
