import type { Principal } from "../access/principal.ts";
import type { ReadCaller } from "../db/index.ts";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import type { Query } from "./query.ts";

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
   * A JSON body over 64 KiB as its bytes, unparsed, for who parses it in another process; null for a smaller one. Errors: 415,
   * 413, 400.
   */
  largeBody(): Promise<Uint8Array<ArrayBuffer>[] | null>;
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
