import { BoundedMap } from "../../../kernel/bounded-map.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { POSITION_WAIT_MS, STICKY_MAX, STICKY_MS } from "./limits.ts";

/** The header that names the position of what an answer shows, and what a request must see at least. */
export const POSITION_HEADER = "platform-position";
const POSITION_MAX_LENGTH = 256;
/** Statuses of answers without a position: one that upgrades to a WebSocket, and a refusal, which shows nothing. */
const WITHOUT_POSITION: ReadonlySet<number> = new Set([101, 503]);
/** Headers by which a client is known to be the same one. */
const CREDENTIALS = ["authorization", "x-platform-service-key", "cookie"] as const;

/** The header that asks for what the owner has; no other value than `latest`. */
export const CONSISTENCY_HEADER = "platform-consistency";
export const LATEST = "latest";

/** Positions of the log as clients see them: opaque, and of one cluster and history only. */
export class Positions {
  readonly #clock: Clock;
  readonly #prefix: () => string;
  /** Positions that callers have written through this node lately. */
  readonly #written = new BoundedMap<string, { position: number; until: number }>(STICKY_MAX);
  readonly #waiting = new Set<() => void>();

  /** `history` returns the number of losses that were accepted. */
  constructor({ clock, cluster, history }: { clock: Clock; cluster: string; history: () => number }) {
    this.#clock = clock;
    const mark = Bun.hash.xxHash32(cluster).toString(36);
    this.#prefix = () => `${mark}.${history()}.`;
  }

  textOf(position: number): string {
    return this.#prefix() + position.toString(36);
  }

  /** Reads a position. null: it is malformed, or of another cluster or history. */
  read(text: string | null): number | null {
    if (text === null || text.length > POSITION_MAX_LENGTH) return null;
    const prefix = this.#prefix();
    if (!text.startsWith(prefix)) return null;
    const digits = text.slice(prefix.length);
    return /^[0-9a-z]{1,10}$/.test(digits) ? Number.parseInt(digits, 36) : null;
  }

  /** Returns the position that an answer to this request has to show at least; 0: any. */
  required({ headers }: Request): number {
    const named = this.read(headers.get(POSITION_HEADER)) ?? 0;
    const caller = callerOf(headers);
    const written = caller === null ? undefined : this.#written.get(caller);
    if (written === undefined || written.until < this.#clock.now()) return named;
    return Math.max(named, written.position);
  }

  /** Notes what the owner has answered to a request that came through this node. */
  answered({ headers, method }: Request, answer: Response): void {
    if (method === "GET" || method === "HEAD") return;
    const position = this.read(answer.headers.get(POSITION_HEADER));
    const caller = callerOf(headers);
    if (position !== null && caller !== null)
      this.#written.set(caller, { position, until: this.#clock.now() + STICKY_MS });
  }

  /**
   * Names in an answer what it shows. A refusal names nothing: clients keep the newest answer's position, and whoever refuses may be
   * behind what its caller has seen.
   */
  mark(answer: Response, position: number): Response {
    if (!WITHOUT_POSITION.has(answer.status)) answer.headers.set(POSITION_HEADER, this.textOf(position));
    return answer;
  }

  /** Waits until `isThere` holds. Returns false when it does not within POSITION_WAIT_MS. */
  wait(isThere: () => boolean): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const end = (isReached: boolean): void => {
      this.#waiting.delete(look);
      cancel();
      resolve(isReached);
    };
    const look = (): void => {
      if (isThere()) end(true);
    };
    const cancel = this.#clock.after(POSITION_WAIT_MS, () => end(isThere()));
    this.#waiting.add(look);
    return promise;
  }

  /** Lets those that wait look again. */
  progressed(): void {
    for (const look of this.#waiting) look();
  }
}

/** Returns a text that stands for the caller's credentials; null: it has none. */
function callerOf(headers: Headers): string | null {
  const values = CREDENTIALS.map((name) => headers.get(name));
  if (values.every((value) => value === null)) return null;
  return Bun.hash(values.join("\0")).toString(36);
}
