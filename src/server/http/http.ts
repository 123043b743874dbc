import { silently } from "../../kernel/answer-gate.ts";
import type { Clock } from "../../kernel/clock.ts";
import {
  AppError,
  badRequest,
  ClusterRefused,
  type ErrorBody,
  insufficientStorage,
  isDiskFull,
} from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import { clientNetwork } from "../../kernel/network/addresses.ts";
import { Scheduler } from "../../kernel/time/scheduler.ts";
import { InvalidServiceKey } from "../access/keys/service-keys.ts";
import { ANONYMOUS, type Principal } from "../access/principal.ts";
import { type Principals, SERVICE_KEY_HEADER } from "../access/principals.ts";
import { lateBody } from "./bodies/late-body.ts";
import { createUnfinishedBodies, type UnfinishedBodies } from "./bodies/unfinished-bodies.ts";
import type { Cors } from "./cors.ts";
import type { AnyDeclaration, Endpoint } from "./endpoint.ts";
import { partsOf } from "./exchange/endpoint-parts.ts";
import { Exchange, type ExchangeRoute } from "./exchange/exchange.ts";
import type { AnswerListener } from "./exchange/request-context.ts";
import { JsonText, Reply, SilentReply } from "./reply.ts";
import { NO_STORE, NOSNIFF, SHOWN_HEADERS } from "./security-headers.ts";

export type { AnswerListener } from "./exchange/request-context.ts";

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

/** The members of Elysia's context that routes read. Elysia parses only what a handler names. */
export interface ElysiaContext {
  request: Request;
  params?: Record<string, string>;
  /** The pattern of the path. */
  route: string;
}

export interface Http {
  /** Creates the route of an endpoint: limits, principal, its handler, serialisation, error bodies, request id, CORS. */
  endpoint(endpoint: Endpoint): (context: ElysiaContext) => MaybePromise<Response>;
  /** Answers a thrown error. */
  failure(cause: unknown, request: Request, requestId?: string): Response;
  /** Answers a request that no route matched. */
  refusal(cause: unknown, request: Request): Response;
  nextRequestId(): string;
  /** Treats `copy` as `original`: same address, same connection. Returns the copy. */
  inPlaceOf(original: Request, copy: Request): Request;
  /** Functions for routes that are not endpoints, so that they obey the same policies. */
  readonly parts: HttpParts;
}

export interface HttpParts {
  nextRequestId(): string;
  /** Resolves the caller, after the limits of every request. Errors: 401, 403, 429. */
  identify(request: Pick<Request, "headers">, address: () => string): MaybePromise<Principal>;
  /** Counts a request for which credentials do not matter. Errors: 429. */
  countRequest(request: Pick<Request, "headers">, address: () => string): void;
  /** Answers a thrown error, and logs it unless it is an `AppError`. */
  failure(cause: unknown, request: Request, requestId?: string): Response;
  /** Returns the failure as a value, without the headers that every answer has. */
  failureReply(cause: unknown, request: Request, requestId: string): Reply;
  /** Checks the session after an await. Errors: 401, see `Principals.requirePresent`. */
  requirePresent(principal: Principal): void;
  decorate: Cors["decorate"];
  /** The `CommonHeaders`, without a content type. */
  commonHeaders: CommonHeaders;
  addressOf(request: Request): string;
  /** Sets whether the request is held: see `Listener.holdOpen`. */
  holdOpen(request: Request, isHeld: boolean): void;
  inPlaceOf(original: Request, copy: Request): Request;
  bodyMaxBytes: number;
  bodies: UnfinishedBodies;
  turns: Scheduler;
  onAnswer: AnswerListener | undefined;
}

const JSON_HEADERS = { "content-type": "application/json", ...NO_STORE } as const;
const NO_PARAMS: Readonly<Record<string, string>> = {};

export function createHttp(deps: HttpDeps): Http {
  const { onAnswer } = deps;
  const nextRequestId = createRequestIds();
  const originals = new WeakMap<Request, Request>();
  const bodies = createUnfinishedBodies(deps.bodyMaxBytes);
  const turns = new Scheduler();

  const respond = createRespond(deps.cors);
  const failureReply = createFailureReply(deps.logger);
  const failure: Http["failure"] = (cause, request, requestId = nextRequestId()) =>
    respond(request, requestId, failureReply(cause, request, requestId), false);
  const inPlaceOf: Http["inPlaceOf"] = (original, copy) => {
    originals.set(copy, originals.get(original) ?? original);
    return copy;
  };
  const addressOf = (request: Request): string => deps.addressOf(originals.get(request) ?? request);

  const endpoint: Http["endpoint"] = (declared) => {
    const { declaration } = declared;
    const route: ExchangeRoute = {
      endpoint: partsOf(declared),
      identify: createIdentify(deps, declaration),
      requirePresent: deps.principals.requirePresent,
      bodyMaxBytes: Math.min(deps.bodyMaxBytes, declaration.bodyMaxBytes ?? deps.bodyMaxBytes),
      bodies,
      turns,
      clock: deps.clock,
      originalOf: (request) => originals.get(request) ?? request,
      addressOf: deps.addressOf,
      holdOpen: deps.holdOpen,
      respond,
      failure,
      onAnswer,
    };
    return ({ request, params = NO_PARAMS, route: pattern }) =>
      new Exchange(route, { request, params, pattern, requestId: nextRequestId() }).answer();
  };

  return {
    endpoint,
    failure,
    nextRequestId,
    refusal(cause, request) {
      const requestId = nextRequestId();
      const response = failure(cause, request, requestId);
      const { status } = response;
      const nothing = { params: NO_PARAMS, principal: ANONYMOUS, trace: null };
      onAnswer?.({ ...nothing, request, requestId, route: null, status, durationMs: 0 });
      return response;
    },
    inPlaceOf,
    parts: {
      nextRequestId,
      identify: createIdentify(deps, { caller: "rules" }),
      countRequest: createIdentify(deps, { caller: "open" }),
      failure,
      failureReply,
      requirePresent: deps.principals.requirePresent,
      decorate: deps.cors.decorate,
      commonHeaders: createCommonHeaders(deps.cors, NO_STORE),
      addressOf,
      holdOpen: (request, isHeld) => deps.holdOpen(originals.get(request) ?? request, isHeld),
      inPlaceOf,
      bodyMaxBytes: deps.bodyMaxBytes,
      bodies,
      turns,
      onAnswer,
    },
  };
}

/** Creates the function that resolves the principal of a request, after its limits. Errors: 401, 403, 429. */
function createIdentify(
  { principals, globalLimit }: HttpDeps,
  {
    caller,
    credentialsWith,
    limit,
    wrongKeyStatus = 401,
    wrongKeys,
  }: Pick<AnyDeclaration, "caller" | "credentialsWith" | "limit" | "wrongKeyStatus" | "wrongKeys">,
): HttpParts["identify"] {
  const limitAddress = (address: () => string): void => {
    globalLimit(address);
    limit?.(clientNetwork(address()));
  };
  return (request, address) => {
    refuseTrailer(request.headers);
    // Valid service keys are not limited, so the key is checked first; an invalid one counts like any request.
    const hasKey = principals.showsKey(request.headers);
    if (!hasKey) limitAddress(address);
    if (caller === "open" && !(credentialsWith !== undefined && hasParameter(request, credentialsWith))) {
      if (hasKey && !principals.isKeyHolder(request.headers, address)) limitAddress(address);
      return ANONYMOUS;
    }
    // A session cookie is no guess at a key.
    if (request.headers.has(SERVICE_KEY_HEADER)) wrongKeys?.check(clientNetwork(address()));
    try {
      return principals.ofHeaders(request.headers, address);
    } catch (cause) {
      if (hasKey) limitAddress(address);
      if (!(cause instanceof InvalidServiceKey)) throw cause;
      wrongKeys?.count(clientNetwork(address()));
      throw new InvalidServiceKey(wrongKeyStatus);
    }
  };
}

/**
 * Refuses trailers. Bun reads none: it answers the request, then parses the trailer as another request and answers that with 400,
 * which the client may take for the answer. Errors: 400.
 */
function refuseTrailer(headers: Headers): void {
  if (headers.get("trailer") !== null) throw badRequest("A request must not have a trailer");
}

function hasParameter(request: Pick<Request, "headers"> & { url?: string }, name: string): boolean {
  const { url = "" } = request;
  const start = url.indexOf("?");
  return start >= 0 && new URLSearchParams(url.slice(start + 1)).has(name);
}

/** Builds an answer. `isLate`: in a later turn of the event loop than the request's. */
type Respond = (request: Request, requestId: string, value: unknown, isLate: boolean) => Response;

/** Maps a thrown error to an answer as a value. Anything but an `AppError` is logged, and its answer reveals nothing about it. */
function createFailureReply(logger: Logger): HttpParts["failureReply"] {
  const failureReply: HttpParts["failureReply"] = (cause, request, requestId) => {
    if (!(cause instanceof AppError)) {
      if (isDiskFull(cause)) return failureReply(insufficientStorage(cause), request, requestId);
      logger.error("request failed", { requestId, method: request.method, url: pathOf(request), cause });
      return new Reply(500, { code: 500, message: "Internal error" } satisfies ErrorBody);
    }
    const body: ErrorBody = { code: cause.status, message: cause.message };
    if (cause.data !== undefined) body.data = cause.data;
    const ReplyOf = cause instanceof ClusterRefused ? SilentReply : Reply;
    return new ReplyOf(cause.status, body, cause.headers);
  };
  return failureReply;
}

/** Adds the headers that every answer has, and serialises values that are not a `Response`. */
function createRespond(cors: Cors): Respond {
  const commonHeaders = createCommonHeaders(cors, JSON_HEADERS);
  const headersOf = (request: Request, requestId: string, own: Reply["headers"]) => {
    const common = own === undefined ? commonHeaders(request, requestId) : null;
    if (common !== null) return common;
    const headers: Record<string, string> = { ...JSON_HEADERS, ...NOSNIFF, "x-request-id": requestId };
    cors.decorate(headers, request);
    return Object.assign(headers, own);
  };
  const build: Respond = (request, requestId, value, isLate) => {
    if (value instanceof Response) {
      const headers: Record<string, string> = { ...SHOWN_HEADERS, "x-request-id": requestId };
      cors.decorate(headers, request);
      if (!value.headers.has("cache-control")) Object.assign(headers, NO_STORE);
      for (const [name, text] of Object.entries(headers)) {
        // A file may also vary with the client's accepted encodings.
        if (name === "vary") value.headers.append(name, text);
        else value.headers.set(name, text);
      }
      return value;
    }
    const reply = value instanceof Reply ? value : null;
    const body = reply === null ? value : reply.body;
    const init = { status: reply?.status ?? 200, headers: headersOf(request, requestId, reply?.headers) };
    if (body instanceof ReadableStream) return new Response(body, init);
    if (isLate && request.method !== "HEAD") {
      return new Response(lateBody(body instanceof JsonText ? body.text : JSON.stringify(body)), init);
    }
    return body instanceof JsonText ? new Response(body.text, init) : Response.json(body, init);
  };
  return (...about) => {
    const response = build(...about);
    return about[2] instanceof SilentReply ? silently(response) : response;
  };
}

/** The last two digits of request ids. */
const ENDINGS = Array.from({ length: 36 ** 2 }, (_, index) => index.toString(36).padStart(2, "0"));

/** Generates request ids: a random prefix per process, which makes them unique across processes, and a counter, which is cheap. */
function createRequestIds(): () => string {
  const prefix = Buffer.from(crypto.getRandomValues(new Uint8Array(6))).toString("hex");
  let count = 0;
  let beginning = "";
  return () => {
    const index = count % ENDINGS.length;
    if (index === 0) beginning = `${prefix}-${Math.floor(count / ENDINGS.length).toString(36)}`;
    count += 1;
    return beginning + (ENDINGS[index] ?? "");
  };
}

const pathOf = (request: Request): string => new URL(request.url).pathname;

/**
 * Returns the headers of an answer that has no others than every answer has. `Response` copies them, so one object serves all
 * answers: Bun copies `Headers` six times as quickly as it reads an object with the same members. null: this answer needs other
 * headers as well.
 */
type CommonHeaders = (request: Request, requestId: string) => Headers | null;

/** Creates the common headers. `others`: further headers, such as a content type. */
function createCommonHeaders(cors: Cors, others: Readonly<Record<string, string>> = {}): CommonHeaders {
  const shared = new Headers({ ...NOSNIFF, ...others });
  return (request, requestId) => {
    if (cors.isConcerned(request)) return null;
    shared.set("x-request-id", requestId);
    return shared;
  };
}
