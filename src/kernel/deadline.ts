import type { Clock } from "./clock.ts";

/** What `promise` gives. Errors: its own; one of this function when it has not settled after `timeoutMs`. */
export function within<T>(clock: Clock, timeoutMs: number, promise: Promise<T>): Promise<T> {
  const { promise: result, resolve, reject } = Promise.withResolvers<T>();
  const cancel = clock.after(timeoutMs, () => reject(new Error(`took longer than ${timeoutMs} ms`)));
  promise.then(resolve, reject).finally(cancel);
  return result;
}
