/** A stand-in for an argument of a rule that records whether the rule reads it. */
export interface Probe<Facts extends object> {
  standIn: Facts;
  /** Whether it was read in any way: a member, `in`, its keys, its JSON. */
  readonly isSeen: boolean;
}

/** Ends a rule that reads a stand-in whose values it must not use. One for all, as making an error takes microseconds. */
const SEEN = new Error("the rule reads its argument");

/**
 * `facts`: the values that a rule which reads the stand-in gets; null: reading it throws, which ends the rule, unless it
 * catches that.
 */
export function createProbe<Facts extends object>(facts: Facts | null): Probe<Facts> {
  let isSeen = false;
  // Every operation on a proxy first reads a trap from its handler. This handler has no traps, but notices the read.
  const handler = new Proxy<ProxyHandler<Facts>>(
    {},
    {
      get() {
        isSeen = true;
        if (facts === null) throw SEEN;
      },
    },
  );
  return {
    standIn: new Proxy(facts ?? ({} as Facts), handler),
    get isSeen() {
      return isSeen;
    },
  };
}

/**
 * Whether a function may take more than `count` arguments. Its `length` omits rest parameters, parameters with a default, and
 * `arguments`, which its text shows; true for some functions that take no more.
 */
export function mayTakeMoreThan(work: (...args: never[]) => unknown, count: number): boolean {
  if (work.length > count) return true;
  const text = Function.prototype.toString.call(work);
  return /^[^(]*\([^)]*(?:=|\.\.\.)|\barguments\b|\[native code\]/.test(text);
}
