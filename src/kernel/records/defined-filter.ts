/** Levels of a filter that are looked at. What is deeper is refused where the filter is parsed. */
const DEPTH_MAX = 64;

/**
 * Describes what makes a filter of a config's code another one than it seems: no filter at all, or `undefined` inside of it, which would
 * be lost, or become null, as JSON. Returns the place and the problem; null for none.
 */
export function filterGap(filter: unknown, name: string): { at: string; problem: string } | null {
  if (filter === undefined || filter === null) return { at: name, problem: `is ${String(filter)}` };
  if (typeof filter !== "object") return { at: name, problem: "must be a list of conditions, or a group" };
  return gapIn(filter, name, DEPTH_MAX);
}

function gapIn(value: unknown, at: string, depth: number): { at: string; problem: string } | null {
  if (value === undefined) return { at, problem: "is undefined" };
  if (typeof value !== "object" || value === null || depth === 0) return null;
  for (const name of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    const found = gapIn((value as Record<string | number, unknown>)[name], `${at}.${name}`, depth - 1);
    if (found !== null) return found;
  }
  return null;
}
