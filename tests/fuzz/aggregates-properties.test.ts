import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { compareText } from "../../src/kernel/records/text-match.ts";
import { type ListAnswer, type TestPlatform, testPlatform } from "../support/index.ts";
import { random, testSeed } from "../support/random.ts";

// Aggregates of random records agree with a model that counts in JavaScript, in zones whose clocks change.

const SEED = testSeed(20_281);
const ROUNDS = 150 * Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const RECORDS = 600;
const TEXTS = ["", "a", "A", "ä", "e\u0301", "\uffff", "😀", "100%", "z'\""];
const ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"];
const UNITS = ["minute", "hour", "day", "week", "month", "year"] as const;
type Unit = (typeof UNITS)[number];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const r = random(SEED);
const path = "/api/db/shared/tables/items";
let platform: TestPlatform;
let stored: JsonObject[];

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: { items: {
      schema: { s: { type: "string" }, i: { type: "integer" }, n: { type: "number" }, b: { type: "boolean" }, at: { type: "datetime" } },
      indexes: [{ fields: ["s"] }, { fields: ["i", "at"] }], access: { read: () => [["i", "!=", 5]] },
    } } } } }`,
  });
  const orNull = <T>(value: T): T | null => (r.chance(0.15) ? null : value);
  // Around the changes of clocks of a year, where days have 23 to 25 hours.
  const changes = ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-04-04T15:00:00Z", "2026-12-31T22:00:00Z"];
  const time = () =>
    new Date(
      Date.parse(r.pick(changes)) + r.below(6 * HOUR_MS) - 3 * HOUR_MS + (r.below(3) - 1) * DAY_MS,
    ).toISOString();
  const inserts = Array.from({ length: RECORDS }, (_, index) => ({
    id: `r${index}`,
    ...{ s: orNull(r.pick(TEXTS)), i: orNull(r.below(8) - 2), n: orNull(r.below(64) / 4 - 8) },
    ...{ b: orNull(r.chance(0.5)), at: orNull(time()) },
  }));
  for (let from = 0; from < RECORDS; from += 500) {
    const answer = await platform.service.post(`${path}/batch`, { inserts: inserts.slice(from, from + 500) });
    expect(answer.status).toBe(200);
  }
  const query = { limit: 1_000 };
  stored = (await platform.get<ListAnswer>(path, { query })).body.items;
});
afterAll(() => platform.stop());

/** Year, month … minute by the clocks of a zone. */
function clocks(zone: string): (at: Date) => number[] {
  const format = new Intl.DateTimeFormat("en-GB", {
    ...{ timeZone: zone, year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" },
    hourCycle: "h23",
  });
  return (at) => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    return ["year", "month", "day", "hour", "minute"].map((type) => parts.get(type as never) ?? 0);
  };
}

const two = (value: number): string => String(value).padStart(2, "0");

function label(read: (at: Date) => number[], unit: Unit, value: JsonValue): string | null {
  if (typeof value !== "string") return null;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0] = read(new Date(value));
  const date = `${year}-${two(month)}-${two(day)}`;
  switch (unit) {
    case "year":
      return String(year);
    case "month":
      return `${year}-${two(month)}`;
    case "day":
      return date;
    case "hour":
      return `${date}T${two(hour)}:00`;
    case "minute":
      return `${date}T${two(hour)}:${two(minute)}`;
    case "week": {
      const noon = new Date(Date.UTC(year, month - 1, day, 12));
      const sinceMonday = (noon.getUTCDay() + 6) % 7;
      return new Date(noon.getTime() - sinceMonday * DAY_MS).toISOString().slice(0, 10);
    }
  }
}

/** null first, then booleans, numbers and texts by code point: the order of lists. */
function compareValues(one: JsonValue, other: JsonValue): number {
  if (one === other) return 0;
  if (one === null) return -1;
  if (other === null) return 1;
  if (typeof one === "string" && typeof other === "string") return compareText(one, other);
  return Number(one) - Number(other);
}

function aggregateOf(select: string, records: readonly JsonObject[]): JsonValue {
  const [, name = "", field = ""] = /^(\w+)\((\w*)\)$/.exec(select) ?? [];
  if (name === "count") return records.length;
  const values = records.map((record) => record[field] ?? null).filter((value) => value !== null);
  if (values.length === 0) return null;
  const sorted = values.toSorted(compareValues);
  if (name === "min") return sorted[0] ?? null;
  if (name === "max") return sorted.at(-1) ?? null;
  // Quarters: every sum is exact.
  const sum = values.reduce<number>((total, value) => total + Number(value), 0);
  return name === "sum" ? sum : sum / values.length;
}

const SELECTS = ["count()", "sum(i)", "sum(n)", "avg(n)", "avg(i)", "min(n)", "max(i)", "min(s)", "max(s)", "min(at)"];

test(`[TB410, TB411] aggregates agree with JavaScript, whatever the groups and the zone (seed ${SEED})`, async () => {
  expect(stored.length).toBeGreaterThan(RECORDS / 2);
  for (let round = 0; round < ROUNDS; round++) {
    const zone = r.pick(ZONES);
    const read = clocks(zone);
    const select = [...new Set(Array.from({ length: 1 + r.below(4) }, () => r.pick(SELECTS)))];
    const unit = r.pick(UNITS);
    const groupBy = ["s", "i", "b", "n", `at:${unit}`].filter(() => r.chance(0.3));
    const bound = r.below(6) - 2;
    const filter = r.chance(0.4) ? [] : [["i", r.pick([">", "<=", "!="]), bound]];
    const query = {
      ...{ select: select.join(","), limit: 1_000, timezone: zone, filter: JSON.stringify(filter) },
      ...(groupBy.length === 0 ? {} : { groupBy: groupBy.join(",") }),
    };
    const matching = stored.filter((record) => {
      const value = record["i"] ?? null;
      const operator = filter[0]?.[1];
      if (operator === undefined) return true;
      if (operator === "!=") return value !== bound;
      if (value === null) return false;
      return operator === ">" ? Number(value) > bound : Number(value) <= bound;
    });
    const keyOf = (record: JsonObject): JsonValue[] =>
      groupBy.map((name) => (name.includes(":") ? label(read, unit, record["at"] ?? null) : (record[name] ?? null)));
    const groups = new Map<string, { key: JsonValue[]; records: JsonObject[] }>();
    for (const record of matching) {
      const key = keyOf(record);
      const group = groups.get(JSON.stringify(key));
      if (group === undefined) groups.set(JSON.stringify(key), { key, records: [record] });
      else group.records.push(record);
    }
    if (groupBy.length === 0 && groups.size === 0) groups.set("", { key: [], records: [] });
    const order = (one: { key: JsonValue[] }, other: { key: JsonValue[] }): number =>
      one.key.map((value, index) => compareValues(value, other.key[index] ?? null)).find((sign) => sign !== 0) ?? 0;
    const wanted = [...groups.values()].sort(order).map(({ key, records }) => ({
      ...Object.fromEntries(groupBy.map((name, index) => [name, key[index] ?? null])),
      ...Object.fromEntries(select.map((each) => [each, aggregateOf(each, records)])),
    }));
    const { status, body } = await platform.get<{ groups: JsonObject[] }>(`${path}/aggregate`, { query });
    expect({ query, status, groups: body.groups }).toEqual({ query, status: 200, groups: wanted.slice(0, 1_000) });
  }
}, 300_000);
