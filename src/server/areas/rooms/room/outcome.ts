import type { Clock } from "../../../../kernel/clock.ts";
import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";

export type Outcome<T> = { ok: true; value: T } | { ok: false; cause: unknown };

/**
 * Calls `finish` once with the outcome of `work`: at once when `work` is synchronous, and with an error when it takes
 * longer than `timeoutMs`. Resolves when `finish` has run.
 */
export function runBounded<T>(
  clock: Clock,
  timeoutMs: number,
  work: () => MaybePromise<T>,
  finish: (outcome: Outcome<T>) => void,
): MaybePromise<void> {
  let value: MaybePromise<T>;
  try {
    value = work();
  } catch (cause) {
    finish({ ok: false, cause });
    return;
  }
  if (!isPromise(value)) {
    finish({ ok: true, value });
    return;
  }
  const promise = value;
  return new Promise((resolve) => {
    let isOver = false;
    const end = (outcome: Outcome<T>): void => {
      if (isOver) return;
      isOver = true;
      cancelTimeout();
      finish(outcome);
      resolve();
    };
    const cancelTimeout = clock.after(timeoutMs, () => {
      end({ ok: false, cause: new Error(`The handler took longer than ${timeoutMs} ms`) });
    });
    promise.then(
      (result) => end({ ok: true, value: result }),
      (cause: unknown) => end({ ok: false, cause }),
    );
  });
}
