export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const UNITS: Readonly<Record<string, number>> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };

/** Parses `"30s"`, `"15m"`, `"1h"` or `"7d"` into milliseconds; null for anything else. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,9})([smhd])$/.exec(text);
  const unit = UNITS[match?.[2] ?? ""];
  return match === null || unit === undefined ? null : Number(match[1]) * unit;
}
