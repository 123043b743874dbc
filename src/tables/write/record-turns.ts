import type { Clock } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import { RECORD_TURN_MAX_MS, WAITING_PER_RECORD_MAX } from "../limits.ts";

/** The records of one write, while its rules and hooks are awaited. */
export interface RecordTurn {
  covers(records: ReadonlySet<string>): boolean;
  release(): void;
}

interface Queue {
  size: number;
  last: Promise<void>;
}

/**
 * Writes that await a rule or hook come to a record one after the other, first come, first served: each would make the
 * others' answers void, and all but a few would start over for ever. Only a courtesy: what makes a write right is that an
 * answer counts for the very record it was given about.
 */
export class RecordTurns {
  readonly #clock: Clock;
  readonly #queues = new Map<string, Queue>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when all of them are free. Errors: 503 when too many wait for one of them. */
  async take(records: ReadonlySet<string>): Promise<RecordTurn> {
    for (const record of records) {
      if ((this.#queues.get(record)?.size ?? 0) < WAITING_PER_RECORD_MAX) continue;
      throw new AppError(503, `Too many writes wait for this record (at most ${WAITING_PER_RECORD_MAX})`);
    }
    const over = Promise.withResolvers<void>();
    // In all queues at once: of two writes the same is before the other in every queue that they share.
    await Promise.all([...records].map((record) => this.#enter(record, over.promise)));
    let isOver = false;
    const release = (): void => {
      if (isOver) return;
      isOver = true;
      cancelTimeout();
      for (const record of records) this.#leave(record);
      over.resolve();
    };
    const cancelTimeout = this.#clock.after(RECORD_TURN_MAX_MS, release);
    return { covers: (others) => others.isSubsetOf(records), release };
  }

  /** Resolves when whoever came before has gone. */
  #enter(record: string, over: Promise<void>): Promise<void> | undefined {
    const queue = this.#queues.get(record);
    this.#queues.set(record, { size: (queue?.size ?? 0) + 1, last: over });
    return queue?.last;
  }

  #leave(record: string): void {
    const queue = this.#queues.get(record);
    if (queue === undefined) return;
    queue.size -= 1;
    if (queue.size === 0) this.#queues.delete(record);
  }
}
