import { ANONYMOUS, callerNameOf, type Principal } from "../access/principal.ts";
import { clientNetwork } from "../kernel/client-network.ts";
import type { Clock } from "../kernel/clock.ts";
import { badRequest } from "../kernel/errors.ts";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import { isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import type { Turns } from "../kernel/turns.ts";
import { type BodyRules, readJson, readJsonObject, readLargeBody } from "./body.ts";
import { LargeAnswer } from "./json-stream.ts";
import { type KnownParameters, type Query, queryOf } from "./query.ts";
import type { AnswerListener, Handler, RequestBasics, RequestContext } from "./request-context.ts";
import type { UnfinishedBodies } from "./unfinished-bodies.ts";

/** What the exchanges of one route share. */
export interface ExchangeRoute {
  /** The principal of a request, after its limits. Errors: 401, 403, 429. */
  identify(request: Request, address: () => string): MaybePromise<Principal>;
  /** The query parameters that the route takes; null: any. */
  knownParameters(method: string, pattern: string): KnownParameters;
  bodyMaxBytes: number;
  bodies: UnfinishedBodies;
  turns: Turns;
  clock: Clock;
  /** The request that came over the connection: see `Http.inPlaceOf`. */
  originalOf(request: Request): Request;
  addressOf(request: Request): string;
  holdOpen(request: Request, isHeld: boolean): void;
  respond(request: Request, requestId: string, value: unknown): Response;
  failure(cause: unknown, request: Request, requestId: string): Response;
  onAnswer: AnswerListener | undefined;
}

/**
 * One request and its answer. Handlers destructure what they need (`({ params, query }) => …`), so functions are created by
 * getters: most requests need one or two of them.
 */
export abstract class Exchange implements RequestBasics {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly requestId: string;
  principal: Principal = ANONYMOUS;
  readonly #route: ExchangeRoute;
  readonly #pattern: string;
  readonly #startedAt: number;
  #query: Query | null = null;
  #large: LargeAnswer | null = null;
  #isHeld = false;

  constructor(
    route: ExchangeRoute,
    asked: { request: Request; params: Readonly<Record<string, string>>; pattern: string; requestId: string },
  ) {
    this.#route = route;
    this.request = asked.request;
    this.params = asked.params;
    this.requestId = asked.requestId;
    this.#pattern = asked.pattern;
    this.#startedAt = route.onAnswer === undefined ? 0 : performance.now();
  }

  answer(): MaybePromise<Response> {
    try {
      checkEncoding(this.params);
      const identified = this.#route.identify(this.request, this.address);
      const value = isPromise(identified)
        ? identified.then((principal) => this.#run(principal))
        : this.#run(identified);
      if (!isPromise(value)) return this.#finish(value);
      return value.then((result) => this.#finish(result)).catch((cause) => this.#fail(cause));
    } catch (cause) {
      return this.#fail(cause);
    }
  }

  get address(): () => string {
    return () => this.#route.addressOf(this.#original);
  }

  get holdOpen(): () => void {
    return () => this.#hold(true);
  }

  get keepUntilSent(): (release: () => void) => void {
    return (release) => {
      this.#large ??= new LargeAnswer();
      this.#large.keep(release);
    };
  }

  /** The handler's value. Called once, with the principal known. */
  protected abstract handle(): MaybePromise<unknown>;

  get largeBody(): () => Promise<Uint8Array<ArrayBuffer>[] | null> {
    return () => readLargeBody(this.request, this.bodyRules());
  }

  get callerName(): string {
    return callerNameOf(this.principal, this.address);
  }

  /** Used by long reads only: Bun creates the signal on first access. */
  get signal(): AbortSignal {
    return this.#original.signal;
  }

  get #original(): Request {
    return this.#route.originalOf(this.request);
  }

  protected parsedQuery(): Query {
    // HEAD is answered by the handlers of GET.
    const method = this.request.method === "HEAD" ? "GET" : this.request.method;
    this.#query ??= queryOf(this.request, () => this.#route.knownParameters(method, this.#pattern));
    return this.#query;
  }

  protected bodyRules(): BodyRules {
    const { bodyMaxBytes, bodies, turns } = this.#route;
    const sender = () => (this.principal.kind === "serviceKey" ? null : clientNetwork(this.address()));
    return { query: this.parsedQuery(), maxBytes: bodyMaxBytes, bodies, turns, sender };
  }

  #run(principal: Principal): MaybePromise<unknown> {
    this.principal = principal;
    return this.handle();
  }

  #finish(value: unknown): Response {
    const body = this.#large === null ? value : this.#large.bodyOf(value, this.#route.clock);
    return this.#answered(this.#route.respond(this.request, this.requestId, body));
  }

  #fail(cause: unknown): Response {
    this.#large?.release();
    return this.#answered(this.#route.failure(cause, this.request, this.requestId));
  }

  #answered(response: Response): Response {
    this.#hold(false);
    const { request, principal } = this;
    const durationMs = performance.now() - this.#startedAt;
    this.#route.onAnswer?.({ request, route: this.#pattern, status: response.status, durationMs, principal });
    return response;
  }

  #hold(isHeld: boolean): void {
    if (this.#isHeld !== isHeld) this.#route.holdOpen(this.request, isHeld);
    this.#isHeld = isHeld;
  }
}

/** The exchange of a route without a declaration. */
export class PlainExchange extends Exchange implements RequestContext {
  readonly #handler: Handler;

  constructor(handler: Handler, ...rest: ConstructorParameters<typeof Exchange>) {
    super(...rest);
    this.#handler = handler;
  }

  get query(): () => Query {
    return () => this.parsedQuery();
  }

  get json(): () => Promise<JsonValue> {
    return () => readJson(this.request, this.bodyRules());
  }

  get jsonObject(): () => Promise<JsonObject> {
    return () => readJsonObject(this.request, this.bodyRules());
  }

  protected handle(): MaybePromise<unknown> {
    return this.#handler(this);
  }
}

/** Elysia's router gives null for a parameter that it cannot decode, contrary to its types. Errors: 400. */
function checkEncoding(params: Readonly<Record<string, string | null>>): void {
  for (const name in params) if (params[name] === null) throw badRequest("The path is not valid percent-encoding");
}
