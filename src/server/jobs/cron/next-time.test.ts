import { expect, test } from "bun:test";
import { DAY_MS } from "../../../kernel/time/duration.ts";
import { cronTimes } from "./next-time.ts";

const BERLIN = "Europe/Berlin";

/** Returns the next times of a schedule, without the date's zeros. */
function times(expression: string, timezone: string, from: string, count = 4): string[] {
  const { next } = cronTimes(expression, timezone);
  const found: string[] = [];
  let time: number | null = Date.parse(from);
  for (let index = 0; index < count; index++) {
    time = next(time);
    if (time === null) break;
    found.push(new Date(time).toISOString().slice(0, 16));
  }
  return found;
}

test("[JB40] five fields and nicknames, in UTC and in a time zone", () => {
  expect(times("0 3 * * *", "UTC", "2026-01-01T03:00:00Z", 2)).toEqual(["2026-01-02T03:00", "2026-01-03T03:00"]);
  expect(times("@daily", BERLIN, "2026-01-01T12:00:00Z", 2)).toEqual(["2026-01-01T23:00", "2026-01-02T23:00"]);
  expect(times("@hourly", "Asia/Kolkata", "2026-01-01T12:00:00Z", 2)).toEqual(["2026-01-01T12:30", "2026-01-01T13:30"]);
  expect(times("0 9 * * MON-FRI", "America/New_York", "2026-07-03T20:00:00Z", 1)).toEqual(["2026-07-06T13:00"]);
  expect(times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 1)).toEqual(["2028-02-29T00:00"]);
});

test("[JB42] a local time that is skipped runs at the change, once", () => {
  // At 01:00 UTC the clocks go from 02:00 to 03:00.
  const from = "2026-03-28T12:00:00Z";
  expect(times("30 2 * * *", BERLIN, from, 2)).toEqual(["2026-03-29T01:00", "2026-03-30T00:30"]);
  expect(times("15,45 2 * * *", BERLIN, from, 3)).toEqual(["2026-03-29T01:00", "2026-03-30T00:15", "2026-03-30T00:45"]);
  expect(times("30 2,3 * * *", BERLIN, from, 3)).toEqual(["2026-03-29T01:00", "2026-03-29T01:30", "2026-03-30T00:30"]);
  expect(times("0 0 * * *", "Asia/Beirut", from, 2)).toEqual(["2026-03-28T22:00", "2026-03-29T21:00"]);
});

test("[JB42] a local time that is repeated runs the first time only", () => {
  // At 01:00 UTC the clocks go from 03:00 to 02:00.
  const from = "2026-10-24T12:00:00Z";
  expect(times("30 2 * * *", BERLIN, from, 2)).toEqual(["2026-10-25T00:30", "2026-10-26T01:30"]);
  expect(times("*/30 2 * * *", BERLIN, from, 3)).toEqual(["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-26T01:00"]);
  // A start within the repeated hour.
  expect(times("30 2 * * *", BERLIN, "2026-10-25T01:10:00Z", 1)).toEqual(["2026-10-26T01:30"]);
});

test("[JB42] every hour is an hour, whatever the clocks show", () => {
  const repeated = ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00"];
  expect(times("0 * * * *", BERLIN, "2026-10-24T23:30:00Z", 3)).toEqual(repeated);
  const skipped = ["2026-03-29T00:30", "2026-03-29T01:30", "2026-03-29T02:30"];
  expect(times("30 * * * *", BERLIN, "2026-03-29T00:00:00Z", 3)).toEqual(skipped);
});

test("[JB43] the latest missed time, however many there were", () => {
  const now = Date.UTC(2026, 5, 15, 12, 0, 30);
  const latest = (expression: string, since: number) => cronTimes(expression, "UTC").latest(since, now);
  expect(latest("* * * * *", now - 5_000 * DAY_MS)).toBe(Date.UTC(2026, 5, 15, 12, 0));
  expect(latest("0 0 1 1 *", now - 5_000 * DAY_MS)).toBe(Date.UTC(2026, 0, 1));
  expect(latest("0 0 1 1 *", Date.UTC(2026, 0, 1))).toBe(null);
  expect(latest("0 12 * * *", now - 10_000)).toBe(null);
});
