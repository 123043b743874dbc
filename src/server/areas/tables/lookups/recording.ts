import type { MadeLookup } from "./calls.ts";
import type { LookupSource } from "./table-lookup.ts";

/** The lookups of one call of a rule inside a write. */
export interface Recording {
  readonly made: ReadonlyMap<string, MadeLookup>;
  /** Records the lookups of one table, whose keys get `prefix`. */
  of(prefix: string, once: LookupSource["once"]): LookupSource["once"];
  /** Answers these lookups as given. */
  replay(results: ReadonlyMap<string, unknown>): void;
}

export const NOTHING_MADE: ReadonlyMap<string, MadeLookup> = new Map();

export function createRecording(): Recording {
  const made = new Map<string, MadeLookup>();
  let replayed: ReadonlyMap<string, unknown> | null = null;
  return {
    made,
    of: (prefix, once) => (key, read) => {
      const known = prefix + key;
      // Results of this key have the type of `read`.
      const value = replayed?.has(known) === true ? (replayed.get(known) as ReturnType<typeof read>) : once(key, read);
      made.set(known, { value, again: () => once(key, read) });
      return value;
    },
    replay(results) {
      replayed = results;
    },
  };
}
