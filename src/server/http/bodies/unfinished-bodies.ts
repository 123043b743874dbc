import { AppError } from "../../../kernel/errors.ts";
import {
  COMPLETE_MAX_BYTES,
  GARBAGE_MAX_BYTES,
  UNFINISHED_MAX_BYTES,
  UNFINISHED_PER_ADDRESS_MAX_BYTES,
  UNFINISHED_RETRY_SECONDS,
} from "../limits.ts";

/** A body that is arriving. */
export interface HeldBody {
  /**
   * Adds bytes that have arrived. Errors: 429 when the sender's unfinished bodies together are too large, 503 when those of all
   * senders are.
   */
  add(byteCount: number): void;
  /** Marks the body as complete: it no longer counts against its sender, but occupies memory until it is released. */
  complete(): void;
  /** Frees the memory of a body that has been parsed or abandoned. */
  release(): void;
}

interface Body {
  byteCount: number;
  giveUp: (cause: AppError) => void;
}

interface Sender {
  byteCount: number;
  /** The sender's bodies, oldest first. */
  readonly bodies: Set<Body>;
}

const refusal = (status: 429 | 503): AppError =>
  new AppError(status, "Too much of unfinished request bodies is waiting for the rest, try again later", {
    headers: { "retry-after": String(UNFINISHED_RETRY_SECONDS) },
  });

/**
 * The memory of bodies that are still arriving. Beyond the bound for all, the sender that holds most loses its newest body, so that
 * a few senders of endless bodies cannot lock out the others.
 */
export type UnfinishedBodies = ReturnType<typeof createUnfinishedBodies>;

/** Creates the accounting. `bodyMaxBytes`: of one body; where the config allows large ones, the bounds have room for them. */
export function createUnfinishedBodies(bodyMaxBytes: number) {
  const perAddressMaxBytes = Math.max(UNFINISHED_PER_ADDRESS_MAX_BYTES, 2 * bodyMaxBytes);
  const maxBytes = Math.max(UNFINISHED_MAX_BYTES, 4 * bodyMaxBytes);
  const senders = new Map<string | null, Sender>();
  let total = 0;
  let completeBytes = 0;
  /** The bytes parsed since the last garbage collection requested here. */
  let parsedBytes = 0;
  const waiting: (() => void)[] = [];

  const senderOf = (name: string | null): Sender => {
    const found = senders.get(name);
    if (found !== undefined) return found;
    const fresh = { byteCount: 0, bodies: new Set<Body>() };
    senders.set(name, fresh);
    return fresh;
  };
  const release = (name: string | null, body: Body): void => {
    const sender = senders.get(name);
    if (sender?.bodies.delete(body) !== true) return;
    sender.byteCount -= body.byteCount;
    total -= body.byteCount;
    if (sender.bodies.size === 0) senders.delete(name);
  };
  const parsed = (byteCount: number): void => {
    completeBytes -= byteCount;
    parsedBytes += byteCount;
    if (parsedBytes > GARBAGE_MAX_BYTES) {
      parsedBytes = 0;
      // Mostly runs beside the event loop.
      Bun.gc(false);
    }
    // Wakes all of them: each checks again.
    for (const resume of waiting.splice(0)) resume();
  };
  /** Finds the newest body of the sender that holds most. */
  const largest = (): { name: string | null; body: Body } | null => {
    let name: string | null = null;
    let most: Sender | null = null;
    for (const [other, sender] of senders) {
      if (most !== null && most.byteCount >= sender.byteCount) continue;
      name = other;
      most = sender;
    }
    const body = most === null ? undefined : [...most.bodies].at(-1);
    return body === undefined ? null : { name, body };
  };

  return {
    /**
     * Begins a body. `sender`: a client's network; null for a service key, which only the bound for all concerns. `giveUp` is called
     * when the body has to make room for others.
     */
    begin(name: string | null, giveUp: (cause: AppError) => void): HeldBody {
      const body: Body = { byteCount: 0, giveUp };
      let isComplete = false;
      senderOf(name).bodies.add(body);
      return {
        add(byteCount) {
          const sender = senders.get(name);
          if (sender?.bodies.has(body) !== true) return;
          body.byteCount += byteCount;
          sender.byteCount += byteCount;
          total += byteCount;
          if (name !== null && sender.byteCount > perAddressMaxBytes) {
            release(name, body);
            throw refusal(429);
          }
          while (total > maxBytes) {
            const found = largest();
            if (found === null) return;
            release(found.name, found.body);
            if (found.body === body) throw refusal(503);
            found.body.giveUp(refusal(503));
          }
        },
        complete() {
          release(name, body);
          isComplete = true;
          completeBytes += body.byteCount;
        },
        release() {
          release(name, body);
          if (isComplete) parsed(body.byteCount);
          isComplete = false;
        },
      };
    },
    /** Resolves when further bytes may be read, without any action of a sender. */
    async room(): Promise<void> {
      while (completeBytes > COMPLETE_MAX_BYTES) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
