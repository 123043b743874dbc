/** A value that may have to be waited for. Hot paths stay synchronous where nothing is awaited. */
export type MaybePromise<T> = T | Promise<T>;

/** What a function gives that need not return anything. */
// biome-ignore lint/suspicious/noConfusingVoidType: `undefined` would ask functions for a return statement
export type OrNothing<T> = T | void;

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** Like `then`, without a turn of the event loop when the value is already there. */
export function chain<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return isPromise(value) ? value.then(next) : next(value);
}
