import { distance } from "fastest-levenshtein";

/** A name with more edits is another name, not a slip. */
const SLIP_EDITS = 2;

/** ` (did you mean "x"?)` for the known name nearest to a mistyped one; empty where none is near. */
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
