import type { Clock } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import { DeadlineError, within } from "../../../kernel/time/deadline.ts";
import { REPLACE_WAIT_MS } from "../limits.ts";

/** Instances whose content is being replaced: what is asked of them waits. */
export class Replacing {
  readonly #clock: Clock;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async run(instanceId: string, work: () => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#underWay.set(instanceId, promise);
    try {
      await work();
    } finally {
      this.#underWay.delete(instanceId);
      resolve();
    }
  }

  /** Resolves when nothing replaces the content; undefined: nothing does. Errors: 503 after REPLACE_WAIT_MS. */
  waited(instanceId: string): Promise<void> | undefined {
    const underWay = this.#underWay.get(instanceId);
    if (underWay === undefined) return undefined;
    return within(this.#clock, REPLACE_WAIT_MS, underWay).catch((cause: unknown) => {
      throw cause instanceof DeadlineError ? replacing() : cause;
    });
  }

  /** Resolves when nothing replaces the content; undefined: nothing does. */
  done(instanceId: string): Promise<void> | undefined {
    return this.#underWay.get(instanceId);
  }
}

/** Refuses what was asked while the content of an instance is replaced. */
export const replacing = (): AppError =>
  new AppError(503, "The instance is being restored; the request may be sent again", {
    headers: { "retry-after": "1" },
  });
