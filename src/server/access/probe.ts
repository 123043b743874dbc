/** A stand-in for an argument of a rule that records whether the rule reads it. */
export interface Probe<Facts extends object> {
  standIn: Facts;
  /** Whether the stand-in was read in any way: a member, `in`, its keys, its JSON. */
  readonly isSeen: boolean;
  /** Counts as reading the stand-in: the rule has read something else that is known only with it. */
  see(): void;
}

/** Aborts a rule that reads a stand-in whose values it must not use. Shared, as creating an error takes microseconds. */
const SEEN = new Error("the rule reads its argument");

/** Creates a probe. `facts`: the values of the stand-in; null: reading it throws, which aborts the rule, unless it catches that. */
export function createProbe<Facts extends object>(facts: Facts | null): Probe<Facts> {
  let isSeen = false;
  const see = (): void => {
    isSeen = true;
    if (facts === null) throw SEEN;
  };
  // Every operation on a proxy first reads a trap from its handler. This handler has no traps, but records the read.
  const handler = new Proxy<ProxyHandler<Facts>>(
    {},
    {
      get: see,
    },
  );
  return {
    standIn: new Proxy(facts ?? ({} as Facts), handler),
    get isSeen() {
      return isSeen;
    },
    see,
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
