import { PATTERN_MAX_MS, PATTERN_REPEATS_MAX } from "../limits.ts";

/** Units repeated in the test texts: letters, digits, and the separators of names, addresses and numbers. */
const UNITS = ["a", "A", "0", " ", "-", ".", "_", "@", "a ", "a-", "a.", "a0", "ab", "0,", "é"];
/** Ends that do not match, so that the pattern backtracks through every other way to match. */
const ENDS = ["!", "\n"];

/**
 * Finds a short text on which the pattern is slow, because its time grows exponentially or by a high power: a slightly longer text
 * would block the server. null: no such text was found. The texts grow by one unit, which keeps the search itself quick.
 */
export function slowTextOf(pattern: RegExp): string | null {
  const tried = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ""));
  for (const unit of UNITS) {
    for (const end of ENDS) {
      for (let count = 4; count <= PATTERN_REPEATS_MAX; count++) {
        const text = unit.repeat(count) + end;
        // Measures again: other work of the machine may have delayed the first attempts.
        if (isSlow(tried, text) && isSlow(tried, text) && isSlow(tried, text)) return text;
      }
    }
  }
  return null;
}

function isSlow(pattern: RegExp, text: string): boolean {
  const startedAt = performance.now();
  pattern.test(text);
  return performance.now() - startedAt > PATTERN_MAX_MS;
}
