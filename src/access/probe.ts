/** A stand-in for what a rule may look at, which notes whether it does. */
export interface Probe<Facts extends object> {
  standIn: Facts;
  /** Whether anything of it was asked for, in whatever way: a member, `in`, its names, its JSON. */
  readonly isSeen: boolean;
}

/** `facts` are what a rule finds that looks all the same. */
export function createProbe<Facts extends object>(facts: Facts): Probe<Facts> {
  let isSeen = false;
  // Whatever is done with a proxy, its handler is asked first how: here for nothing of its own, but it has been asked.
  const handler = new Proxy<ProxyHandler<Facts>>(
    {},
    {
      get() {
        isSeen = true;
      },
    },
  );
  return {
    standIn: new Proxy(facts, handler),
    get isSeen() {
      return isSeen;
    },
  };
}

/**
 * Whether a function may have more parameters than its `length` says: rest parameters and those with a default are not
 * counted, nor what `arguments` reaches. Told by its text; true also for some that have not.
 */
export function mayTakeMore(work: (...args: never[]) => unknown): boolean {
  const text = Function.prototype.toString.call(work);
  return /^[^(]*\([^)]*(?:[,=]|\.\.\.)|\barguments\b|\[native code\]/.test(text);
}
