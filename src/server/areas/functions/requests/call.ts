import { AppError } from "../../../../kernel/errors.ts";
import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { RequestTrace } from "../../../../kernel/observing/request-trace.ts";
import { ANONYMOUS, type Principal } from "../../../access/principal.ts";
import type { HttpParts } from "../../../http/http.ts";
import { NO_STORE, NOSNIFF } from "../../../http/security-headers.ts";
import type { Ask } from "../../../sockets/judge.ts";
import type { FormField } from "../forms/read-form.ts";
import type { SocketOptions } from "./socket-options.ts";

/**
 * The parameters in answers' records: none. The pattern stands for the path, as parameters of own routes may be secrets, such as in
 * a link to unsubscribe.
 */
const NO_PARAMS: Readonly<Record<string, string>> = {};

const CALL = Symbol("call");
type Known = Request & { [CALL]?: Call };

/** Returns the call of a request. It is a member of the request: a `WeakMap` costs more at a hundred thousand requests a second. */
export const callOf = (request: Request): Call | undefined => (request as Known)[CALL];

/** Assigns a further request to the call. Returns it. */
export function belongsTo(call: Call, request: Request): Request {
  (request as Known)[CALL] = call;
  return request;
}

/** One request to a route of the config. */
export class Call {
  readonly request: Request;
  readonly requestId: string;
  readonly trace: RequestTrace;
  principal: Principal = ANONYMOUS;
  /** The reason for refusing the caller; null: none. A path without a route is 404 first. */
  refusal: unknown = null;
  /** The pattern of the matched route; null: none so far. */
  route: string | null = null;
  /** Evaluates the route's rules; null: they have looked nothing up. */
  ask: Ask | null = null;
  /** Evaluates the route's rules again, with the current records; null: they have looked nothing up. */
  askAgain: (() => MaybePromise<unknown>) | null = null;
  /** Builds a body from a form's fields. */
  readForm: ((fields: readonly FormField[]) => Promise<unknown>) | null = null;
  /** Whether the route has parsers of its own. */
  parsesItself = false;
  /** The route's WebSocket options; null: it has none. */
  socket: SocketOptions | null = null;
  /** Whether the body has been read for schemas and the handler. */
  isParsed = false;
  isUpgraded = false;
  #isLate = false;
  isHeld = false;
  /** Whether the answer has the headers that every answer has. */
  #isComplete = false;
  readonly #http: HttpParts;
  readonly #startedAt: number;

  constructor(http: HttpParts, request: Request) {
    this.#http = http;
    this.request = request;
    this.requestId = http.nextRequestId();
    belongsTo(this, request);
    this.#startedAt = performance.now();
    this.trace = new RequestTrace({ requestId: this.requestId, address: () => this.address }, this.#startedAt);
  }

  /** The headers of the answer that upgrades to a WebSocket. */
  get protocolHeaders(): Readonly<Record<string, string>> {
    return tokenProtocol(this.request.headers) === null ? {} : { "sec-websocket-protocol": TOKEN_PROTOCOL };
  }

  /** Identifies the caller, and counts the request. It does not throw: `refusal` has the error. */
  identify(): Promise<void> | undefined {
    const refuse = (cause: unknown): void => {
      this.refusal = cause;
    };
    try {
      const identified = this.#http.identify(credentialsOf(this.request), () => this.address);
      if (isPromise(identified)) return identified.then((principal) => this.#know(principal)).catch(refuse);
      this.#know(identified);
    } catch (cause) {
      refuse(cause);
    }
    return undefined;
  }

  get address(): string {
    return this.#http.addressOf(this.request);
  }

  /** Whether the answer has a body, and is made in a later turn of the event loop than the request's. */
  get isLate(): boolean {
    return this.#isLate && this.request.method !== "HEAD";
  }

  /** Marks the answer as late from now on. */
  wait(): void {
    this.#isLate = true;
  }

  /** Whether a rate limit is exceeded: nothing else of the request is then checked. */
  get isLimited(): boolean {
    return this.refusal instanceof AppError && this.refusal.status === 429;
  }

  /** Returns the headers of the answer while it has no others; null: it has. Only for an answer that is made at once. */
  commonHeaders(): Headers | null {
    const headers = this.#http.commonHeaders(this.request, this.requestId);
    this.#isComplete = headers !== null;
    return headers;
  }

  /**
   * Checks the caller's right; called when the body has arrived. Errors: 401 if the session or key has ended meanwhile [HT135];
   * those of the route's rules, if the records that they looked up have changed. [FN25]
   */
  arrived(): MaybePromise<unknown> {
    this.#http.requirePresent(this.principal);
    return this.askAgain?.();
  }

  failure(cause: unknown): Response {
    this.#isComplete = true;
    return this.#http.failure(cause, this.request, this.requestId);
  }

  /** Exempts the connection from the idle timeout. */
  hold(): void {
    this.isHeld = true;
    this.#http.holdOpen(this.request, true);
  }

  finish(response: Response): Response {
    if (this.isHeld) this.#http.holdOpen(this.request, false);
    const { request, route, principal } = this;
    if (!this.#isComplete) this.#complete(response);
    const status = this.isUpgraded ? 101 : response.status;
    const durationMs = performance.now() - this.#startedAt;
    const { requestId, trace } = this;
    this.#http.onAnswer?.({ request, requestId, route, params: NO_PARAMS, status, durationMs, principal, trace });
    return response;
  }

  /** Adds the headers that every answer has, unless the config's code has set them. */
  #complete({ headers }: Response): void {
    const common: Record<string, string> = { ...NOSNIFF, ...NO_STORE };
    this.#http.decorate(common, this.request);
    for (const [name, value] of Object.entries(common)) {
      if (!headers.has(name)) headers.set(name, value);
    }
    headers.set("x-request-id", this.requestId);
  }

  #know(principal: Principal): void {
    this.principal = principal;
  }
}

/** The subprotocol before a token: `new WebSocket(url, ["bearer", token])`, as pages cannot send other headers with a WebSocket. */
const TOKEN_PROTOCOL = "bearer";

function tokenProtocol(headers: Headers): string | null {
  const [protocol, token = ""] = headers.get("sec-websocket-protocol")?.split(",") ?? [];
  return protocol?.trim() === TOKEN_PROTOCOL && token !== "" ? token.trim() : null;
}

/** Returns the request, or headers with the token of a WebSocket in place of its own. */
function credentialsOf(request: Request): Pick<Request, "headers"> {
  if (request.method !== "GET" || !request.headers.has("sec-websocket-protocol")) return request;
  const token = tokenProtocol(request.headers);
  if (token === null || request.headers.has("authorization")) return request;
  const headers = new Headers(request.headers);
  headers.set("authorization", `Bearer ${token}`);
  return { headers };
}
