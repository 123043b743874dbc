import type { RequestTrace } from "../../../kernel/observing/request-trace.ts";
import type { Principal } from "../../access/principal.ts";
import type { ReadCaller } from "../../db/index.ts";

/** A SHA-256 of a request's body. */
export interface BodyHash {
  /** Resolves when an unread body has been read. */
  readonly read: Promise<void>;
  /** Of the bytes read so far: call it once the body has been read. */
  digest(): Uint8Array;
}

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
   * For handlers that read the body themselves, when it has arrived: the caller's session or key may have ended meanwhile. JSON bodies
   * need it not. Errors: 401. [HT135]
   */
  requirePresent(): void;
  /**
   * The bytes of a JSON body over 64 KiB, for handlers that have it parsed in another process; null for a smaller one. Called
   * after the rights, as `body()` is. Errors: 415, 413, 400 for an unknown query parameter.
   */
  largeBody(): Promise<Uint8Array<ArrayBuffer>[] | null>;
  /**
   * Hashes `prefix` and the bytes of the body. Called before `body()`, whose reading it then follows; with `isUnread`, instead of it: the
   * body is read and not parsed. Errors of that reading: 413.
   */
  digestBody(options: { isUnread: boolean; prefix: string }): BodyHash;
}

/** An answered request. */
export interface Answered {
  request: Request;
  requestId: string;
  /** The pattern of the path (`/api/kv/:namespace`); null where no route matched. */
  route: string | null;
  /** The parameters of the path, as they were sent. */
  params: Readonly<Record<string, string>>;
  status: number;
  /** From the start of the handler to its answer. */
  durationMs: number;
  principal: Principal;
  /** null: nothing was measured, as the answer took no handler. */
  trace: RequestTrace | null;
}

/** Called after every answer; feeds the request log and the metrics. */
export type AnswerListener = (answer: Answered) => void;
