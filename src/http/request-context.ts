import type { Principal } from "../access/principal.ts";
import type { ReadCaller } from "../db/index.ts";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import type { Query } from "./query.ts";

/** What every handler gets. As a `ReadCaller` it names the caller of long reads, and ends them when the client is gone. */
export interface RequestBasics extends ReadCaller {
  readonly request: Request;
  readonly requestId: string;
  /** The client's address. [HT11] */
  address(): string;
  /**
   * Keeps the connection open until the answer, however little data is transferred. For handlers that take long or read large
   * bodies, and that bound time and size themselves.
   */
  holdOpen(): void;
  /**
   * The bytes of a JSON body over 64 KiB, for handlers that have it parsed in another process; null for a smaller one. Called
   * after the rights, as `body()` is. Errors: 415, 413, 400 for an unknown query parameter.
   */
  largeBody(): Promise<Uint8Array<ArrayBuffer>[] | null>;
}

/** What the handler of a route without a declaration gets. */
export interface RequestContext extends RequestBasics {
  readonly params: Readonly<Record<string, string>>;
  readonly principal: Principal;
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
export type Handler = (context: RequestContext) => MaybePromise<unknown>;

/**
 * Called after every answer; feeds the request log and the metrics. `route` is the pattern of the path
 * (`/api/kv/:namespace`), null where no route matched; `durationMs` is the time from the handler's start to its answer.
 */
export type AnswerListener = (answer: {
  request: Request;
  route: string | null;
  status: number;
  durationMs: number;
  principal: Principal;
}) => void;
