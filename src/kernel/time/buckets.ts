import { ZONE_DAYS_MAX } from "../limits.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "./duration.ts";
import { parseIsoDateTime } from "./iso-datetime.ts";
import { timeZone } from "./time-zone.ts";

export const BUCKET_UNITS = ["minute", "hour", "day", "week", "month", "year"] as const;
export type BucketUnit = (typeof BUCKET_UNITS)[number];

const labels = new Map<number, string>();

/** Returns `2026-11-21` for a number of days since 1970. */
function dayLabel(day: number): string {
  const known = labels.get(day);
  if (known !== undefined) return known;
  const label = new Date(day * DAY_MS).toISOString().slice(0, -"T00:00:00.000Z".length);
  if (labels.size >= ZONE_DAYS_MAX) labels.clear();
  labels.set(day, label);
  return label;
}

const twoDigits = (value: number): string => (value < 10 ? `0${value}` : String(value));

/**
 * Returns the label of the minute, hour, day, week (by Monday), month or year in which the clocks of a zone show a time, such as
 * `2026-11-21T14:00` or `2026-11`. Hours that a change of the clocks repeats have one label. null for a text that is no ISO 8601
 * time. Errors: an unknown zone.
 */
export function bucketLabel(text: string, unit: BucketUnit, zoneName: string): string | null {
  const time = parseIsoDateTime(text);
  if (Number.isNaN(time)) return null;
  const zone = timeZone(zoneName);
  if (zone === null) throw new Error(`there is no time zone ${zoneName}`);
  const local = time + zone.offsetAt(time);
  const day = Math.floor(local / DAY_MS);
  switch (unit) {
    case "minute":
    case "hour": {
      const inDay = local - day * DAY_MS;
      const minute = unit === "hour" ? 0 : Math.floor((inDay % HOUR_MS) / MINUTE_MS);
      return `${dayLabel(day)}T${twoDigits(Math.floor(inDay / HOUR_MS))}:${twoDigits(minute)}`;
    }
    case "day":
      return dayLabel(day);
    case "week": {
      // 1970-01-01 was a Thursday, three days after a Monday.
      const sinceMonday = (((day + 3) % 7) + 7) % 7;
      return dayLabel(day - sinceMonday);
    }
    case "month":
      return dayLabel(day).slice(0, -"-01".length);
    case "year":
      return dayLabel(day).slice(0, -"-01-01".length);
  }
}
