import { expect, test } from "bun:test";
import { BUCKET_UNITS, bucketLabel } from "./buckets.ts";
import { timeZone } from "./time-zone.ts";

const HOUR_MS = 3_600_000;

test("labels are the beginnings of buckets in UTC", () => {
  const labels = (text: string) => BUCKET_UNITS.map((unit) => bucketLabel(text, unit, "UTC"));
  expect(labels("2026-11-22T14:03:59.999Z")).toEqual([
    "2026-11-22T14:03",
    "2026-11-22T14:00",
    "2026-11-22",
    "2026-11-16",
    "2026-11",
    "2026",
  ]);
  expect(labels("1969-12-31")).toEqual([
    "1969-12-31T00:00",
    "1969-12-31T00:00",
    "1969-12-31",
    "1969-12-29",
    "1969-12",
    "1969",
  ]);
  expect(bucketLabel("2026-03-30T00:30:00+0200", "hour", "UTC")).toBe("2026-03-29T22:00");
  expect(bucketLabel("2026-03-30T00:30", "day", "UTC")).toBe("2026-03-30");
  expect(bucketLabel("0001-01-01T00:00:00Z", "year", "UTC")).toBe("0001");
  expect(bucketLabel("soon", "day", "UTC")).toBeNull();
  expect(timeZone("Europe/Nowhere")).toBeNull();
});

test("labels follow the clocks of a zone: changes, half hours, and offsets of former times", () => {
  const hour = (text: string, zone: string) => bucketLabel(text, "hour", zone);
  expect(hour("2026-03-29T00:59:59Z", "Europe/Berlin")).toBe("2026-03-29T01:00");
  expect(hour("2026-03-29T01:00:00Z", "Europe/Berlin")).toBe("2026-03-29T03:00");
  expect(hour("2026-10-25T00:30:00Z", "Europe/Berlin")).toBe("2026-10-25T02:00");
  expect(hour("2026-10-25T01:30:00Z", "Europe/Berlin")).toBe("2026-10-25T02:00");
  expect(hour("2026-10-25T02:00:00Z", "Europe/Berlin")).toBe("2026-10-25T03:00");
  expect(hour("2026-01-01T00:14:00Z", "Asia/Kathmandu")).toBe("2026-01-01T05:00");
  expect(hour("2026-01-01T00:15:00Z", "Asia/Kathmandu")).toBe("2026-01-01T06:00");
  expect(hour("2026-04-04T14:59:00Z", "Australia/Lord_Howe")).toBe("2026-04-05T01:00");
  expect(hour("2026-04-04T15:00:00Z", "Australia/Lord_Howe")).toBe("2026-04-05T01:00");
  expect(bucketLabel("1880-01-01T00:00:00Z", "minute", "Europe/Berlin")).toBe("1880-01-01T00:53");
  // Samoa had no 30 December 2011.
  expect(bucketLabel("2011-12-30T09:59:59Z", "day", "Pacific/Apia")).toBe("2011-12-29");
  expect(bucketLabel("2011-12-30T10:00:00Z", "day", "Pacific/Apia")).toBe("2011-12-31");
  expect(bucketLabel("2026-01-04T23:30:00Z", "week", "Europe/Berlin")).toBe("2026-01-05");
});

test("offsets agree with the clocks of the zone at every hour of the years of changes", () => {
  for (const zone of ["Europe/Berlin", "America/St_Johns", "Africa/Casablanca", "Pacific/Chatham", "America/Caracas"]) {
    const parts = { month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;
    const format = new Intl.DateTimeFormat("en-CA", { timeZone: zone, hourCycle: "h23", year: "numeric", ...parts });
    for (const year of [1945, 1999, 2016, 2026]) {
      for (let time = Date.UTC(year, 0, 1); time < Date.UTC(year + 1, 0, 1); time += 5 * HOUR_MS + 1_000) {
        const shown = format.format(time).replace(", ", "T");
        expect([zone, new Date(time + (timeZone(zone)?.offsetAt(time) ?? 0)).toISOString().slice(0, 19)]).toEqual([
          zone,
          shown,
        ]);
      }
    }
  }
});
