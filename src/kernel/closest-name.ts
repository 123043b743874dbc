/** Edits beyond which a name is another name and no slip. */
const EDITS_MAX = 2;

/** ` (did you mean "x"?)` for the known name nearest to a mistyped one; empty where none is near. */
export function closestName(name: string, known: readonly string[]): string {
  let closest: string | null = null;
  let fewest = Math.min(EDITS_MAX, Math.floor(name.length / 2)) + 1;
  for (const candidate of known) {
    const edits = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (edits >= fewest) continue;
    fewest = edits;
    closest = candidate;
  }
  return closest === null ? "" : ` (did you mean "${closest}"?)`;
}

/** Levenshtein's distance, one row of the matrix at a time. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
