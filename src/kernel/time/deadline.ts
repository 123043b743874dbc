import type { Clock } from "../clock.ts";

/** Thrown when an operation exceeds its time limit. Its later result is ignored. */
export class DeadlineError extends Error {
  constructor(timeoutMs: number) {
    super(`took longer than ${timeoutMs} ms`);
    this.name = "DeadlineError";
  }
}

/** Resolves to the result of `promise`. Errors: its own; `DeadlineError` if it has not settled after `timeoutMs`. */
export function within<T>(clock: Clock, timeoutMs: number, promise: Promise<T>): Promise<T> {
  const { promise: result, resolve, reject } = Promise.withResolvers<T>();
  const cancel = clock.after(timeoutMs, () => reject(new DeadlineError(timeoutMs)));
  promise.then(resolve, reject).finally(cancel);
  return result;
}

/** Resolves to the result of `work`, which continues if the signal is aborted first. Errors: its own; the signal's reason. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
