/** A value, or a promise of it. Hot paths stay synchronous where nothing is awaited. */
export type MaybePromise<T> = T | Promise<T>;

/** The result of a function that may return nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: `undefined` would ask functions for a return statement
export type OrNothing<T> = T | void;

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** Chains `next` like `then`, but runs it at once when the value is not a promise. */
export function chain<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return isPromise(value) ? value.then(next) : next(value);
}
