/** Hashes of a record's fields by their names. */
export type Print = ReadonlyMap<string, string>;

/** The states of one record: what was moved last time, what is there and here now; null: there is none. */
export interface States {
  moved: Print | null;
  there: Print | null;
  here: Print | null;
}

/**
 * Decision of a second move on a record. `leave`: it was made, changed or deleted here; `isNewThere`: and is another one there than
 * it was.
 */
export type Decision =
  | { kind: "nothing" | "insert" | "update" | "delete" }
  | { kind: "leave"; because: "made" | "changed" | "deleted"; isNewThere: boolean };

const NOTHING: Decision = { kind: "nothing" };

/** Decides by what has changed on which side. Fields that only one side has are of no account. */
export function decide({ moved, there, here }: States): Decision {
  if (there === null && here === null) return NOTHING;
  if (there === null) {
    if (moved === null) return { kind: "leave", because: "made", isNewThere: false };
    return differs(moved, here, here) ? { kind: "leave", because: "changed", isNewThere: true } : { kind: "delete" };
  }
  if (here === null) {
    if (moved === null) return { kind: "insert" };
    return { kind: "leave", because: "deleted", isNewThere: differs(moved, there, there) };
  }
  if (!differs(there, here, here)) return NOTHING;
  if (moved === null) return { kind: "leave", because: "made", isNewThere: true };
  const isNewThere = differs(moved, there, here);
  return differs(moved, here, there) ? { kind: "leave", because: "changed", isNewThere } : { kind: "update" };
}

/** Whether two prints differ in a field that a third one has as well. */
function differs(one: Print, other: Print | null, asked: Print | null): boolean {
  for (const [name, hash] of one) {
    if (other?.has(name) === true && asked?.has(name) === true && other.get(name) !== hash) return true;
  }
  return false;
}
