import { distance } from "fastest-levenshtein";

/** Maximum number of edits in a misspelling; a name with more is a different name. */
const SLIP_EDITS = 2;

/** Returns ` (did you mean "x"?)` for the known name nearest to a misspelled one; empty when none is near. */
export function closestName(name: string, known: readonly string[]): string {
  let closest: string | null = null;
  let fewest = Math.min(SLIP_EDITS, Math.floor(name.length / 2)) + 1;
  for (const candidate of known) {
    const edits = distance(name.toLowerCase(), candidate.toLowerCase());
    if (edits >= fewest) continue;
    fewest = edits;
    closest = candidate;
  }
  return closest === null ? "" : ` (did you mean "${closest}"?)`;
}
