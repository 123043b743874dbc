import { BoundedMap } from "../bounded-map.ts";
import { ZONE_DAYS_MAX, ZONES_MAX } from "../limits.ts";
import { DAY_MS, SECOND_MS } from "./duration.ts";

const UTC: TimeZone = { offsetAt: () => 0 };
const zones = new BoundedMap<string, TimeZone>(ZONES_MAX);

/** Returns the zone of this name; null: there is none. */
export function timeZone(name: string): TimeZone | null {
  if (name === "UTC") return UTC;
  const known = zones.get(name);
  if (known !== undefined) return known;
  const read = offsetReader(name);
  if (read === null) return null;
  const zone = cachedByDay(read);
  zones.set(name, zone);
  return zone;
}

/** Returns a function that reads the offset at a time from the clock and the day of the month that the zone shows. */
function offsetReader(timeZone: string): ((time: number) => number) | null {
  let format: Intl.DateTimeFormat;
  try {
    const parts = { day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" } as const;
    format = new Intl.DateTimeFormat("en-US", { timeZone, hourCycle: "h23", ...parts });
  } catch {
    return null;
  }
  return (time) => {
    const shown: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of format.formatToParts(time)) shown[type] = Number(value);
    const { day = 0, hour = 0, minute = 0, second = 0 } = shown;
    const inDay = (hour * 3_600 + minute * 60 + second) * SECOND_MS;
    const utcInDay = time - Math.floor(time / DAY_MS) * DAY_MS;
    const dayOf = (at: number) => new Date(at).getUTCDate();
    const days = day === dayOf(time) ? 0 : day === dayOf(time + DAY_MS) ? 1 : -1;
    return days * DAY_MS + inDay - Math.floor(utcInDay / SECOND_MS) * SECOND_MS;
  };
}

interface Day {
  before: number;
  after: number;
  /** The first time with the offset `after`. */
  changesAt: number;
}

/** A time zone of the IANA database. */
export type TimeZone = ReturnType<typeof cachedByDay>;

/**
 * Caches offsets by day. Clocks change at most once in a day of UTC, so two readings and, on such days, a search tell the offset.
 */
function cachedByDay(read: (time: number) => number) {
  const days = new Map<number, Day>();
  let last = Number.NaN;
  let lastDay: Day = { before: 0, after: 0, changesAt: 0 };
  const dayOf = (index: number): Day => {
    const known = days.get(index);
    if (known !== undefined) return known;
    const start = index * DAY_MS;
    const before = read(start);
    const after = read(start + DAY_MS - SECOND_MS);
    const day = { before, after, changesAt: before === after ? start : changeBetween(read, start, start + DAY_MS) };
    if (days.size >= ZONE_DAYS_MAX) days.clear();
    days.set(index, day);
    return day;
  };
  return {
    /** Offset from UTC at a time, in milliseconds; negative west of it. Historic offsets have seconds. */
    offsetAt(time: number): number {
      const index = Math.floor(time / DAY_MS);
      if (index !== last) {
        lastDay = dayOf(index);
        last = index;
      }
      return time < lastDay.changesAt ? lastDay.before : lastDay.after;
    },
  };
}

function changeBetween(read: (time: number) => number, start: number, end: number): number {
  const before = read(start);
  let from = start / SECOND_MS;
  let to = end / SECOND_MS - 1;
  while (to - from > 1) {
    const middle = Math.floor((from + to) / 2);
    if (read(middle * SECOND_MS) === before) from = middle;
    else to = middle;
  }
  return to * SECOND_MS;
}
