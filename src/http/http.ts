import { ANONYMOUS, callerNameOf, type Principal } from "../access/principal.ts";
import { type Principals, SERVICE_KEY_HEADER } from "../access/principals.ts";
import { InvalidServiceKey } from "../access/service-keys.ts";
import type { ReadCaller } from "../db/index.ts";
import { clientNetwork } from "../kernel/client-network.ts";
import type { Clock } from "../kernel/clock.ts";
import { AppError, badRequest, type ErrorBody, insufficientStorage, isDiskFull } from "../kernel/errors.ts";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import type { Logger } from "../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import { createTurns } from "../kernel/turns.ts";
import { type BodyRules, readJson, readJsonObject } from "./body.ts";
import type { Cors } from "./cors.ts";
import { LargeAnswer } from "./json-stream.ts";
import { type KnownParameters, type Query, queryOf } from "./query.ts";
import { JsonText, Reply } from "./reply.ts";
import { NOSNIFF, SHOWN_HEADERS } from "./security-headers.ts";
import { createUnfinishedBodies } from "./unfinished-bodies.ts";

/** What a handler knows of its request. As a `ReadCaller` it says whose long reads are meant, and when nobody waits for them. */
export interface RequestContext extends ReadCaller {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly principal: Principal;
  readonly requestId: string;
  /** The client's address; behind a proxy only with `server.trustProxy`. */
  address(): string;
  /**
   * From here to the answer the connection is not closed because little moves on it. For handlers that take long or read a
   * large body, and bound both themselves.
   */
  holdOpen(): void;
  /**
   * The query. A parameter that the route's description does not name is 400 as soon as the first one is asked for, or the
   * body: after the rights. What reads neither calls `query().refuseUnknown()` there.
   */
  query(): Query;
  /** The body as JSON. Errors: 415, 413, 400; 400 for an unknown query parameter. */
  json(): Promise<JsonValue>;
  /** The body as a JSON object. Errors: as `json`. */
  jsonObject(): Promise<JsonObject>;
}

/** A returned value is answered as 200 JSON, a `Reply` with its status, a `Response` as it is. */
type Handler = (context: RequestContext) => MaybePromise<unknown>;

export interface RouteOptions {
  /** The status for a service key that does not match; 401, but 403 for realtime's broadcast. Spec: Errors. */
  invalidKeyStatus?: 401 | 403;
  /** Counts one hit of the client's network (`clientNetwork`), before credentials are looked at. */
  limit?: (network: string) => void;
  /** Bytes of a JSON body, where it is small by its nature; never more than `server.maxBodySize`. */
  bodyMaxBytes?: number;
  /** true: credentials are not looked at at all (health, signed URLs that ask by themselves). */
  public?: boolean;
}

/**
 * Told of every answer to a request: the request log, the metrics. `route` is the pattern of the path
 * (`/api/kv/:namespace`), null where no route matched; `durationMs` runs from the handler's start until it has its answer.
 */
export type AnswerListener = (answer: {
  request: Request;
  route: string | null;
  status: number;
  durationMs: number;
  principal: Principal;
}) => void;

export interface HttpDeps {
  clock: Clock;
  principals: Principals;
  cors: Cors;
  logger: Logger;
  bodyMaxBytes: number;
  globalLimit: (address: () => string) => void;
  addressOf: (request: Request) => string;
  holdOpen: (request: Request, isHeld: boolean) => void;
  onAnswer?: AnswerListener | undefined;
}

/** The parts of Elysia's context that a route reads; naming no more keeps Elysia from parsing what nobody wants. */
interface ElysiaContext {
  request: Request;
  params?: Record<string, string>;
  /** The pattern of the path. */
  route: string;
}

export interface Http {
  /** Wraps a handler: limits, principal, serialisation, error bodies, request id, CORS. The one way in for every route. */
  route(handler: Handler, options?: RouteOptions): (context: ElysiaContext) => MaybePromise<Response>;
  /** The query parameters of routes by `METHOD PATTERN`, as they are described. Routes that are not there take any. */
  declare(parameters: DeclaredQueries): void;
  /** The answer to what was thrown. */
  failure(cause: unknown, request: Request, requestId?: string): Response;
  /** The answer to a request that came to no route. */
  refusal(cause: unknown, request: Request): Response;
  nextRequestId(): string;
  /** The copy is answered as if it were the original: it came from the same address. Gives the copy. */
  inPlaceOf(original: Request, copy: Request): Request;
}

export function createHttp(deps: HttpDeps): Http {
  const { onAnswer } = deps;
  const nextRequestId = createRequestIds();
  const originals = new WeakMap<Request, Request>();
  let declared: DeclaredQueries = new Map();
  const largeBodies = { bodies: createUnfinishedBodies(deps.bodyMaxBytes), turns: createTurns() };

  const respond = createRespond(deps.cors);
  const failure = createFailure(respond, deps.logger, nextRequestId);

  const route: Http["route"] = (handler, options = {}) => {
    const identify = createIdentify(deps, options);
    const maxBytes = Math.min(deps.bodyMaxBytes, options.bodyMaxBytes ?? deps.bodyMaxBytes);
    const bodyRules = (query: Query, sender: () => string | null): BodyRules => ({
      query,
      maxBytes,
      sender,
      ...largeBodies,
    });

    return ({ request, params, route: pattern }) => {
      const requestId = nextRequestId();
      const startedAt = onAnswer === undefined ? 0 : performance.now();
      const address = () => deps.addressOf(originals.get(request) ?? request);
      let principal: Principal = ANONYMOUS;
      const large = new LargeAnswer();
      const finish = (value: unknown): Response =>
        answered(respond(request, requestId, large.bodyOf(value, deps.clock)));
      const fail = (cause: unknown): Response => {
        large.release();
        return answered(failure(cause, request, requestId));
      };
      let isHeld = false;
      const hold = (held: boolean): void => {
        if (isHeld !== held) deps.holdOpen(request, held);
        isHeld = held;
      };
      const answered = (response: Response): Response => {
        hold(false);
        if (onAnswer === undefined) return response;
        const durationMs = performance.now() - startedAt;
        onAnswer({ request, route: pattern, status: response.status, durationMs, principal });
        return response;
      };
      const run = (identified: Principal): MaybePromise<unknown> => {
        principal = identified;
        return handler(
          contextOf({
            request,
            original: originals.get(request) ?? request,
            params: params ?? {},
            principal,
            requestId,
            address,
            holdOpen: () => hold(true),
            query: queryOnce(request, pattern, declared),
            keepUntilSent: (release) => large.keep(release),
            bodyRules,
          }),
        );
      };
      try {
        if (params !== undefined) checkEncoding(params);
        const identified = identify(request, address);
        const value = isPromise(identified) ? identified.then(run) : run(identified);
        return isPromise(value) ? value.then(finish).catch(fail) : finish(value);
      } catch (cause) {
        return fail(cause);
      }
    };
  };

  return {
    ...{ route, failure, nextRequestId },
    declare(parameters) {
      declared = parameters;
    },
    refusal(cause, request) {
      const response = failure(cause, request);
      onAnswer?.({ request, route: null, status: response.status, durationMs: 0, principal: ANONYMOUS });
      return response;
    },
    inPlaceOf(original, copy) {
      originals.set(copy, original);
      return copy;
    },
  };
}

/** The principal of a request, after its limits. Errors: 401, 403, 429. */
function createIdentify(
  { principals, globalLimit }: HttpDeps,
  options: RouteOptions,
): (request: Request, address: () => string) => MaybePromise<Principal> {
  const limitAddress = (address: () => string): void => {
    globalLimit(address);
    options.limit?.(clientNetwork(address()));
  };
  return (request, address) => {
    // A service key is not limited, so it is identified first; a wrong one counts like anybody's request.
    const hasKey = request.headers.has(SERVICE_KEY_HEADER);
    if (!hasKey) limitAddress(address);
    if (options.public === true) return ANONYMOUS;
    try {
      return principals.ofHeaders(request.headers, address);
    } catch (cause) {
      if (hasKey) limitAddress(address);
      if (cause instanceof InvalidServiceKey) throw new InvalidServiceKey(options.invalidKeyStatus ?? 401);
      throw cause;
    }
  };
}

interface Known
  extends Pick<RequestContext, "request" | "params" | "principal" | "requestId" | "address" | "holdOpen" | "query"> {
  /** The request whose connection it is: see `inPlaceOf`. */
  original: Request;
  keepUntilSent: (release: () => void) => void;
  bodyRules: (query: Query, sender: () => string | null) => BodyRules;
}

function contextOf(known: Known): RequestContext {
  const { request, original, principal, address, query, bodyRules } = known;
  const sender = () => (principal.kind === "serviceKey" ? null : clientNetwork(address()));
  return {
    request,
    params: known.params,
    principal,
    requestId: known.requestId,
    address,
    holdOpen: known.holdOpen,
    keepUntilSent: known.keepUntilSent,
    query,
    json: () => readJson(request, bodyRules(query(), sender)),
    jsonObject: () => readJsonObject(request, bodyRules(query(), sender)),
    get callerName() {
      return callerNameOf(principal, address);
    },
    // Asked for by long reads alone: Bun makes the signal when it is first looked at.
    get signal() {
      return original.signal;
    },
  };
}

type Respond = (request: Request, requestId: string, value: unknown) => Response;

function createFailure(respond: Respond, logger: Logger, nextRequestId: () => string): Http["failure"] {
  const failure: Http["failure"] = (cause, request, requestId = nextRequestId()) => {
    if (!(cause instanceof AppError)) {
      if (isDiskFull(cause)) return failure(insufficientStorage(cause), request, requestId);
      logger.error("request failed", { requestId, method: request.method, url: pathOf(request), cause });
      return respond(request, requestId, new Reply(500, { code: 500, message: "Internal error" } satisfies ErrorBody));
    }
    const body: ErrorBody = { code: cause.status, message: cause.message };
    if (cause.data !== undefined) body.data = cause.data;
    return respond(request, requestId, new Reply(cause.status, body, cause.headers));
  };
  return failure;
}

/** By `METHOD PATTERN` of a route. */
type DeclaredQueries = ReadonlyMap<string, KnownParameters>;

/** HEAD is answered by the handlers of GET. */
function queryOnce(request: Request, pattern: string, declared: DeclaredQueries): () => Query {
  const known = () => declared.get(`${request.method === "HEAD" ? "GET" : request.method} ${pattern}`) ?? null;
  let query: Query | null = null;
  return () => {
    query ??= queryOf(request, known);
    return query;
  };
}

/** Headers that every answer has, and JSON for what is no `Response` yet. */
function createRespond(cors: Cors): Respond {
  return (request, requestId, value) => {
    if (value instanceof Response) {
      const headers: Record<string, string> = { ...SHOWN_HEADERS, "x-request-id": requestId };
      cors.decorate(headers, request);
      for (const [name, text] of Object.entries(headers)) value.headers.set(name, text);
      return value;
    }
    const reply = value instanceof Reply ? value : null;
    const body = reply === null ? value : reply.body;
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "x-request-id": requestId,
      "x-content-type-options": NOSNIFF["x-content-type-options"],
    };
    cors.decorate(headers, request);
    if (reply?.headers !== undefined) Object.assign(headers, reply.headers);
    const init = { status: reply?.status ?? 200, headers };
    if (body instanceof JsonText) return new Response(body.text, init);
    return body instanceof ReadableStream ? new Response(body, init) : Response.json(body, init);
  };
}

/** The router gives null for what it cannot decode, whatever its types say. Errors: 400. */
function checkEncoding(params: Readonly<Record<string, string | null>>): void {
  for (const name in params) if (params[name] === null) throw badRequest("The path is not valid percent-encoding");
}

/** Unique among all processes by its random beginning, and cheap: the rest is a counter. */
function createRequestIds(): () => string {
  const prefix = Buffer.from(crypto.getRandomValues(new Uint8Array(6))).toString("hex");
  let count = 0;
  return () => `${prefix}-${(count++).toString(36)}`;
}

const pathOf = (request: Request): string => new URL(request.url).pathname;
