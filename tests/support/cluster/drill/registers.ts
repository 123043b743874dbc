/** An operation on a register that has one value. `endMs` is infinite where its outcome is not known: it may take effect at any time, or never. */
export interface RegisterOperation {
  kind: "read" | "write" | "exchange";
  /** Value that was read, or written. */
  value: number;
  /** Value that had to be there, for an exchange. */
  expected: number;
  /** Whether an exchange has found it. null: nobody knows. */
  isDone: boolean | null;
  startMs: number;
  endMs: number;
}

/** Returns the value after an operation; null: it cannot have ended so at this value. */
function after(value: number, { kind, isDone, expected, value: own }: RegisterOperation): number | null {
  switch (kind) {
    case "read":
      return value === own ? value : null;
    case "write":
      return own;
    case "exchange":
      if (isDone === null) return value === expected ? own : value;
      if (isDone) return value === expected ? own : null;
      return value === expected ? null : value;
  }
}

/**
 * Says whether there is an order of the operations, in which each takes effect at one moment between its start and its end, that explains
 * what each has returned. Searches as Wing and Gong do, and remembers where it has been, as Lowe does.
 */
export function isLinearizable(operations: readonly RegisterOperation[], first: number): boolean {
  const ordered = operations.toSorted((one, other) => one.startMs - other.startMs);
  const isTaken = ordered.map(() => false);
  const seen = new Set<string>();
  const search = (value: number, from: number): boolean => {
    let next = from;
    while (isTaken[next] === true) next += 1;
    // Nothing may come before what has ended when it began. What is taken already lies before that moment.
    let endsMs = Number.POSITIVE_INFINITY;
    const candidates: number[] = [];
    const ahead: number[] = [];
    for (const [index, operation] of ordered.entries()) {
      if (index < next) continue;
      if (isTaken[index] === true) ahead.push(index);
      else if (operation.startMs > endsMs) break;
      else {
        candidates.push(index);
        endsMs = Math.min(endsMs, operation.endMs);
      }
    }
    // What is not known need not have happened.
    if (ordered.every(({ endMs }, index) => isTaken[index] === true || endMs === Number.POSITIVE_INFINITY)) return true;
    const state = `${value} ${next} ${ahead.join(" ")}`;
    if (seen.has(state)) return false;
    seen.add(state);
    for (const index of candidates) {
      const operation = ordered[index];
      const changed = operation === undefined ? null : after(value, operation);
      if (changed === null) continue;
      isTaken[index] = true;
      if (search(changed, next)) return true;
      isTaken[index] = false;
    }
    return false;
  };
  return search(first, 0);
}
