/** What is repeated in the texts that are tried: letters, digits, and what patterns for names, addresses and numbers have between them. */
const UNITS = ["a", "A", "0", " ", "-", ".", "_", "@", "a ", "a-", "a.", "a0", "ab", "0,", "é"];
/** What makes a pattern that wants the end look for another way to it. */
const ENDS = ["!", "\n"];
const UNITS_MAX = 36;
/** A pattern that needs no more than a few steps for each character takes microseconds. */
const SLOW_MS = 10;

/**
 * A short text for which this pattern takes so long that one of a few more characters would stop the server: its time grows
 * exponentially, or by a high power. null: none was found. The texts grow by one unit at a time, so that the search itself is quick.
 */
export function slowTextOf(pattern: RegExp): string | null {
  const tried = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ""));
  for (const unit of UNITS) {
    for (const end of ENDS) {
      for (let count = 4; count <= UNITS_MAX; count++) {
        const text = unit.repeat(count) + end;
        // Measured again: something else may have held this process meanwhile.
        if (isSlow(tried, text) && isSlow(tried, text) && isSlow(tried, text)) return text;
      }
    }
  }
  return null;
}

function isSlow(pattern: RegExp, text: string): boolean {
  const startedAt = performance.now();
  pattern.test(text);
  return performance.now() - startedAt > SLOW_MS;
}
