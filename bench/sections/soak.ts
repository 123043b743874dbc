import type { Minute } from "../soak/minutes.ts";
import type { Result } from "../support/section.ts";
import { median, milliseconds, perSecond } from "../support/statistics.ts";
import { plain } from "./figures.ts";

/**
 * Warm-up of a long soak: changes are kept for 10 minutes for clients that reconnect. A shorter soak warms up for a third of its
 * time.
 */
const WARM_MINUTES_MAX = 10;
const GROWTH_MAX_PERCENT = 5;
/** Maximum ratio of the slowest minute's p99 to the median. */
const SPREAD_MAX = 2;
const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`;

/** Summarises the minutes. Memory is compared with the last minute of the warm-up, after which it should stop growing. */
export function figuresOf(
  minutes: readonly Minute[],
  errors: number,
): { title: string; about: string; results: Result[] } {
  const warmMinutes = Math.min(WARM_MINUTES_MAX, Math.max(2, Math.floor(minutes.length / 3)));
  const warm = minutes[warmMinutes - 1];
  const last = minutes.at(-1);
  if (warm === undefined || last === undefined) throw new Error("a soak takes more minutes than it warms up for");
  const growthPercent = (last.memoryBytes / warm.memoryBytes - 1) * 100;
  const p99s = minutes.slice(warmMinutes).map(({ p99Ms }) => p99Ms);
  const spread = Math.max(...p99s) / median(p99s);
  const rows = minutes.map(
    ({ requests, p50Ms, p99Ms, memoryBytes }, index): Result => ({
      ...plain(`minute ${index + 1}`, `${perSecond(requests / 60)}, ${mebibytes(memoryBytes)}`),
      ...{ p50: milliseconds(p50Ms), p99: milliseconds(p99Ms) },
    }),
  );
  return {
    title: "Soak",
    about: `\`npm run bench:soak -- ${minutes.length}\`: 16 clients that ask for something of every area every few milliseconds, each with a realtime
connection and a place in a room that come and go; 408 instances, of which 256 stay open; in 8 of them teams whose rules look members
up, with transactions, conditions, triggers, webhooks and jobs; routes, the audit log, requests as another user. What is stored stays as
much, apart from logs, so that only a leak grows. Latency as the clients see it, steps of several requests included.`,
    results: [
      ...rows,
      {
        ...plain(
          `memory, minute ${minutes.length} against minute ${warmMinutes}`,
          `${growthPercent >= 0 ? "+" : ""}${growthPercent.toFixed(1)} %`,
        ),
        ...{ target: `≤ +${GROWTH_MAX_PERCENT} %`, isMet: growthPercent <= GROWTH_MAX_PERCENT },
      },
      {
        ...plain("p99, slowest minute against the median", `× ${spread.toFixed(2)}`),
        ...{ target: `≤ × ${SPREAD_MAX}`, isMet: spread <= SPREAD_MAX },
      },
      { ...plain("errors", String(errors)), target: "0", isMet: errors === 0 },
    ],
  };
}
