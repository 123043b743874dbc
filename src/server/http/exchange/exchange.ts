import type { Clock } from "../../../kernel/clock.ts";
import { badRequest, forbidden, unauthorized } from "../../../kernel/errors.ts";
import { isJsonObject } from "../../../kernel/json/json.ts";
import { isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { clientNetwork } from "../../../kernel/network/addresses.ts";
import { type Requester, RequestTrace, traced } from "../../../kernel/observing/request-trace.ts";
import type { Scheduler } from "../../../kernel/time/scheduler.ts";
import { ANONYMOUS, auditActorOf, callerNameOf, type Principal } from "../../access/principal.ts";
import { refuseScopedKey, requireAnyServiceKey } from "../../access/service-key-right.ts";
import { ArrivingJson, type BodyDigest, type BodyRules } from "../bodies/arriving-json.ts";
import { isBodyAbsent, readJson, readLargeBody, readUnparsed, refuseBody, refuseCoding } from "../bodies/body.ts";
import { notObject } from "../bodies/json-body.ts";
import { LargeAnswer } from "../bodies/json-stream.ts";
import { type Query, queryOf } from "../bodies/query.ts";
import type { UnfinishedBodies } from "../bodies/unfinished-bodies.ts";
import type { EndpointParts } from "./endpoint-parts.ts";
import type { AnswerListener, BodyHash, RequestBasics } from "./request-context.ts";

/** The context that the exchanges of one endpoint share: its declaration's parts, and the server's functions. */
export interface ExchangeRoute {
  endpoint: EndpointParts;
  /** Resolves the principal of a request, after its limits. Errors: 401, 403, 429. */
  identify(request: Request, address: () => string): MaybePromise<Principal>;
  /** Checks that the principal's session or key is still valid. Errors: 401. */
  requirePresent(principal: Principal): void;
  bodyMaxBytes: number;
  bodies: UnfinishedBodies;
  turns: Scheduler;
  clock: Clock;
  /** Returns the request that came over the connection: see `Http.inPlaceOf`. */
  originalOf(request: Request): Request;
  addressOf(request: Request): string;
  holdOpen(request: Request, isHeld: boolean): void;
  /** Builds the answer. `isLate`: in a later turn of the event loop than the request's. */
  respond(request: Request, requestId: string, value: unknown, isLate: boolean): Response;
  failure(cause: unknown, request: Request, requestId: string): Response;
  onAnswer: AnswerListener | undefined;
}

/**
 * One request and its answer. Handlers destructure the functions that they need (`({ params, query }) => …`), so getters create
 * them: most requests need one or two.
 */
export class Exchange implements RequestBasics, Requester {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly requestId: string;
  principal: Principal = ANONYMOUS;
  readonly #route: ExchangeRoute;
  readonly #pattern: string;
  readonly #startedAt: number;
  readonly #trace: RequestTrace;
  #query: Query | null = null;
  #large: LargeAnswer | null = null;
  #digest: BodyDigest | null = null;
  #isHeld = false;
  #address: string | null = null;

  constructor(
    route: ExchangeRoute,
    asked: { request: Request; params: Readonly<Record<string, string>>; pattern: string; requestId: string },
  ) {
    this.#route = route;
    this.request = asked.request;
    this.params = asked.params;
    this.requestId = asked.requestId;
    this.#pattern = asked.pattern;
    this.#startedAt = performance.now();
    this.#trace = new RequestTrace(this, this.#startedAt);
  }

  answer(): MaybePromise<Response> {
    return traced(this.#trace, answerOf, this);
  }

  /** Runs `answer` in the trace of this request. */
  answerInTrace(): MaybePromise<Response> {
    try {
      checkEncoding(this.params);
      const identified = this.#route.identify(this.request, this.address);
      const value = isPromise(identified)
        ? identified.then((principal) => this.#run(principal))
        : this.#run(identified);
      if (!isPromise(value)) return this.#finish(value, false);
      return value.then((result) => this.#finish(this.#shown(result), true)).catch((cause) => this.#fail(cause));
    } catch (cause) {
      return this.#fail(cause);
    }
  }

  /** Memoized: Bun does not know the address of a connection that has closed meanwhile. */
  get address(): () => string {
    return () => {
      this.#address ??= this.#route.addressOf(this.#original);
      return this.#address;
    };
  }

  get holdOpen(): () => void {
    return () => this.#hold(true);
  }

  get requirePresent(): () => void {
    return () => this.#route.requirePresent(this.principal);
  }

  get keepUntilSent(): (release: () => void) => void {
    return (release) => {
      this.#large ??= new LargeAnswer();
      this.#large.keep(release);
    };
  }

  get query(): () => Record<string, unknown> {
    return () => {
      const { query, takesBody } = this.#route.endpoint;
      const values = query.parse(this.#parsedQuery());
      if (takesBody) refuseCoding(this.request);
      else refuseBody(this.request);
      return values;
    };
  }

  get peek(): (name: string) => string | null {
    return (name) => this.#parsedQuery().peek(name);
  }

  get queryText(): () => string {
    return () => this.#parsedQuery().text;
  }

  get body(): () => Promise<unknown> {
    return () => this.#readBody();
  }

  get digestBody(): (options: { isUnread: boolean; prefix: string }) => BodyHash {
    return ({ isUnread, prefix }) => {
      const digest = new Bun.CryptoHasher("sha256").update(prefix);
      this.#digest = digest;
      const read = async (): Promise<void> => this.#arrived(await readUnparsed(this.request, this.#bodyRules()));
      return { read: isUnread ? read() : Promise.resolve(), digest: () => digest.copy().digest() };
    };
  }

  get largeBody(): () => Promise<Uint8Array<ArrayBuffer>[] | null> {
    return async () => this.#arrived(await readLargeBody(this.request, this.#bodyRules()));
  }

  get jsonPart(): () => ArrivingJson {
    return () => new ArrivingJson({ ...this.#bodyRules(), digest: null });
  }

  get callerName(): string {
    return callerNameOf(this.principal, this.address);
  }

  /** Bun creates the signal on first access, so only long reads use it. */
  get signal(): AbortSignal {
    return this.#original.signal;
  }

  get #original(): Request {
    return this.#route.originalOf(this.request);
  }

  #parsedQuery(): Query {
    this.#query ??= queryOf(this.request, this.#route.endpoint.query.known);
    return this.#query;
  }

  async #readBody(): Promise<unknown> {
    const { body } = this.#route.endpoint;
    if (body === null) throw new Error(`${this.request.method} ${this.request.url} declares no JSON body`);
    if (body.isOptional && isBodyAbsent(this.request)) {
      this.#parsedQuery().assertValid();
      return body.parser.parse({});
    }
    const value = this.#arrived(await readJson(this.request, this.#bodyRules()));
    if (body.isObject && !isJsonObject(value)) throw notObject();
    return body.parser.parse(value);
  }

  /**
   * Returns what was read, once the session is checked again: a client may take minutes to send, and its session may end meanwhile.
   * [HT135]
   */
  #arrived<T>(read: T): T {
    this.#route.requirePresent(this.principal);
    return read;
  }

  /** Returns the result, once the session is checked again: a rule or a query may take long, and the session may end meanwhile. [HT136] */
  #shown(result: unknown): unknown {
    if (this.request.method !== "GET" && this.request.method !== "HEAD") return result;
    try {
      return this.#arrived(result);
    } catch (cause) {
      if (result instanceof Response) void result.body?.cancel().catch(() => {});
      throw cause;
    }
  }

  #bodyRules(): BodyRules {
    const { bodyMaxBytes, bodies, turns } = this.#route;
    const sender = () => (this.principal.kind === "serviceKey" ? null : clientNetwork(this.address()));
    const digest = this.#digest;
    return { query: this.#parsedQuery(), maxBytes: bodyMaxBytes, bodies, turns, sender, digest };
  }

  #run(principal: Principal): MaybePromise<unknown> {
    this.principal = principal;
    this.#trace.actor = auditActorOf(principal);
    const { caller, handle, missingKeyStatus, refusesScopedKeys } = this.#route.endpoint;
    if (refusesScopedKeys) refuseScopedKey(principal);
    if (caller === "user") requireUser(principal, this.request.method);
    if (caller === "serviceKey") requireAnyServiceKey(principal, missingKeyStatus);
    // The declaration's types describe the argument of its handler; `EndpointParts` is built from the same declaration.
    return handle(this as never);
  }

  #finish(value: unknown, isLate: boolean): Response {
    const body = this.#large === null ? value : this.#large.bodyOf(value, this.#route.clock);
    return this.#answered(this.#route.respond(this.request, this.requestId, body, isLate));
  }

  #fail(cause: unknown): Response {
    this.#large?.release();
    return this.#answered(this.#route.failure(cause, this.request, this.requestId));
  }

  #answered(response: Response): Response {
    this.#hold(false);
    const { request, params, requestId, principal } = this;
    const { status } = response;
    const durationMs = performance.now() - this.#startedAt;
    const [route, trace] = [this.#pattern, this.#trace];
    this.#route.onAnswer?.({ request, requestId, route, params, status, durationMs, principal, trace });
    return response;
  }

  #hold(isHeld: boolean): void {
    if (this.#isHeld !== isHeld) this.#route.holdOpen(this.request, isHeld);
    this.#isHeld = isHeld;
  }
}

const answerOf = (exchange: Exchange): MaybePromise<Response> => exchange.answerInTrace();

/** Requires a user. Errors: 401 without one; 403 for actions of the user alone when somebody acts as them. [AD9] */
function requireUser(principal: Principal, method: string): void {
  if (principal.kind !== "user") throw unauthorized();
  if (principal.actedBy === undefined || method === "GET" || method === "HEAD") return;
  throw forbidden("Acting as a user does not cover what changes their account");
}

/**
 * Checks that every parameter was decoded: Elysia's router returns null for one that it cannot decode, contrary to its types.
 * Errors: 400.
 */
function checkEncoding(params: Readonly<Record<string, string | null>>): void {
  for (const name in params) if (params[name] === null) throw badRequest("The path is not valid percent-encoding");
}
