import type { Millis } from "../../../kernel/clock.ts";
import { DAY_MS, MINUTE_MS } from "../../../kernel/time/duration.ts";

/**
 * Returns the times of a cron expression in a time zone. Where the hours are `*`, hours are counted as they pass. Otherwise the
 * local time counts: one that a change of the clocks skips is due at the change, and one that it repeats is due the first time.
 */
export function cronTimes(expression: string, timezone: string) {
  const isByHour = /^(?:@hourly$|\S+\s+\*\s)/.test(expression.trim());
  /** Returns the first time after `after`; null: there is none. */
  const next = timezone === "UTC" || isByHour ? byInstant(expression, timezone) : byLocalTime(expression, timezone);
  return {
    next,
    /** Returns the last time up to `now`, if it is after `since`; null: there is none. */
    latest(since: Millis, now: Millis): Millis | null {
      // Searches back from `now` in growing steps: a schedule may have had very many times since.
      for (let windowMs = MINUTE_MS; ; windowMs *= 2) {
        const from = Math.max(since, now - windowMs);
        let found: Millis | null = null;
        for (let time = next(from); time !== null && time <= now; time = next(time)) found = time;
        if (found !== null || from === since) return found;
      }
    },
  };
}

const byInstant = (expression: string, timezone: string) => (after: Millis) =>
  Bun.cron.parse(expression, after, { tz: timezone })?.getTime() ?? null;

function byLocalTime(expression: string, timezone: string): (after: Millis) => Millis | null {
  const offsetAt = offsets(timezone);
  const nextLocal = byInstant(expression, "UTC");
  return (after) => {
    // The local time as if it were UTC.
    for (let local = nextLocal(after + offsetAt(after)); local !== null; local = nextLocal(local)) {
      const instant = instantOf(local, offsetAt);
      // Skips the times of a repeated hour, which were due when the hour passed first.
      if (instant > after) return instant;
    }
    return null;
  };
}

/** Returns the first instant at which the clocks show a local time, or have passed it. */
function instantOf(local: Millis, offsetAt: (instant: Millis) => number): Millis {
  const before = offsetAt(local - DAY_MS);
  const after = offsetAt(local + DAY_MS);
  const instants = [local - before, local - after].sort((one, other) => one - other);
  const shown = instants.find((instant) => instant + offsetAt(instant) === local);
  if (shown !== undefined) return shown;
  let [low = local, high = local] = instants;
  // The offset changes once between them, at a whole minute.
  while (high - low > MINUTE_MS) {
    const middle = low + Math.floor((high - low) / MINUTE_MS / 2) * MINUTE_MS;
    if (offsetAt(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** Returns a function for the offset of a zone's clocks from UTC, in milliseconds. */
function offsets(timezone: string): (instant: Millis) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: timezone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  return (instant) => {
    const parts = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(instant / 1_000) * 1_000;
  };
}
