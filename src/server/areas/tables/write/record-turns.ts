import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import { RECORD_TURN_MAX_MS, WAITING_PER_RECORD_MAX } from "../limits.ts";

/** A write's turn at its records while its rules and hooks are awaited. */
export interface RecordTurn {
  covers(records: ReadonlySet<string>): boolean;
  release(): void;
}

interface Queue {
  size: number;
  last: Promise<void>;
}

/**
 * Queues the writes of one record that await a rule or hook, in order of arrival. Without turns each would invalidate the answers
 * of the others, and most would restart until they fail. Correctness does not depend on turns: an answer is valid only for the
 * exact record that the rule saw. [TB71]
 */
export class RecordTurns {
  readonly #clock: Clock;
  readonly #queues = new Map<string, Queue>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when all records are free. Errors: 503 when too many writes wait for one of them. */
  async take(records: ReadonlySet<string>): Promise<RecordTurn> {
    for (const record of records) {
      if ((this.#queues.get(record)?.size ?? 0) < WAITING_PER_RECORD_MAX) continue;
      throw new AppError(503, `Too many writes wait for this record (at most ${WAITING_PER_RECORD_MAX})`);
    }
    const over = Promise.withResolvers<void>();
    // Enters all queues at once, so that two writes have the same order in every queue that they share.
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

  /** Enters a queue. Resolves when the write before it has left. */
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
