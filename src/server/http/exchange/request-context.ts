import type { RequestTrace } from "../../../kernel/observing/request-trace.ts";
import type { Principal } from "../../access/principal.ts";
import type { ReadCaller } from "../../db/index.ts";
import type { ArrivingJson } from "../bodies/arriving-json.ts";

/** A SHA-256 of a request's body. */
export interface BodyHash {
  /** Resolves when an unread body has been read. */
  readonly read: Promise<void>;
  /** Returns the digest of the bytes read so far: call it once the body has been read. */
  digest(): Uint8Array;
}

/**
 * The members that every handler receives. As a `ReadCaller` it names the caller of long reads, and aborts them when the client is
 * gone.
 */
export interface RequestBasics extends ReadCaller {
  readonly request: Request;
  readonly requestId: string;
  /** The client's address. [HT11] */
  address(): string;
  /**
   * Exempts the connection from the idle timeout until the answer. For handlers that take long or read large bodies, and that bound
   * time and size themselves.
   */
  holdOpen(): void;
  /**
   * Checks that the caller's session or key is still valid. For handlers that read the body themselves, after it has arrived; JSON
   * bodies do not need it. Errors: 401. [HT135]
   */
  requirePresent(): void;
  /**
   * Reads the bytes of a JSON body over 64 KiB, for handlers that have it parsed in another process; null for a smaller one. Called
   * after the check of rights, like `body()`. Errors: 415, 413, 400 for an unknown query parameter.
   */
  largeBody(): Promise<Uint8Array<ArrayBuffer>[] | null>;
  /** Begins the JSON of a part of a form, which the handler reads itself. Its bounds are those of a JSON body. */
  jsonPart(): ArrivingJson;
  /**
   * Hashes `prefix` and the bytes of the body. Called before `body()`, and hashes while that reads; with `isUnread`, instead of it:
   * reads the body without parsing it. Errors of that read: 413.
   */
  digestBody(options: { isUnread: boolean; prefix: string }): BodyHash;
}

/** An answered request. */
export interface Answered {
  request: Request;
  requestId: string;
  /** The pattern of the path (`/api/kv/:namespace`); null where no route matched. */
  route: string | null;
  /** The raw parameters of the path. */
  params: Readonly<Record<string, string>>;
  status: number;
  /** The time from the start of the handler to its answer. */
  durationMs: number;
  principal: Principal;
  /** The measurements; null: the answer needed no handler. */
  trace: RequestTrace | null;
}

/** A listener of every answer; feeds the request log and the metrics. */
export type AnswerListener = (answer: Answered) => void;
