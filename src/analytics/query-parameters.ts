import { type Query, wholeNumber } from "../http/query.ts";
import { ROUTE_AREAS, type RouteArea } from "../http/route-area.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../kernel/duration.ts";
import { badField } from "../kernel/errors.ts";
import { isIsoDateTime, parseIsoDateTime } from "../kernel/iso-datetime.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, SERIES_POINTS_MAX } from "./limits.ts";
import type { EventPlace, EventQuery, RequestQuery, TimeRange } from "./types.ts";

/** Spec: Limits / Analytics. */
export const RANGES = {
  ...{ "1h": HOUR_MS, "6h": 6 * HOUR_MS, "24h": DAY_MS },
  ...{ "7d": 7 * DAY_MS, "30d": 30 * DAY_MS, "90d": 90 * DAY_MS },
} as const;
export const GROUPS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;
export const REQUEST_METRICS = ["overview", "timeSeries", "breakdown", "topEndpoints"] as const;
export const EVENT_METRICS = ["list", "count", "timeSeries", "topEvents"] as const;

/** Errors: 400 naming the parameter. Decisions 11. */
export function parseRequestQuery(query: Query, now: number): RequestQuery {
  const metric = choice(query, "metric", REQUEST_METRICS, "overview");
  const range = parseTimeRange(query, now);
  if (metric === "overview" || metric === "timeSeries") checkPoints(range);
  return { metric, range, categories: parseCategories(query) };
}

/** Errors: 400 naming the parameter. Decisions 11. */
export function parseEventQuery(query: Query, now: number): EventQuery {
  const metric = choice(query, "metric", EVENT_METRICS, "list");
  const range = parseTimeRange(query, now);
  if (metric === "timeSeries") checkPoints(range);
  const cursor = query.get("cursor");
  return {
    ...{ metric, range, event: query.get("event"), userId: query.get("userId") },
    limit: wholeNumber(query, "limit", { min: 1, max: LIST_LIMIT_MAX, fallback: LIST_LIMIT_DEFAULT }),
    after: cursor === null ? null : decodeCursor(cursor),
  };
}

export const encodeCursor = ({ timestamp, id }: EventPlace): string =>
  Buffer.from(`${timestamp}.${id}`).toString("base64url");

function decodeCursor(cursor: string): EventPlace {
  const [, timestamp, id] = /^(-?\d{1,15})\.(\d{1,15})$/.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (timestamp === undefined) throw badField("cursor", "invalid_value", "cursor must be one that a list has returned");
  return { timestamp: Number(timestamp), id: Number(id) };
}

/** `start` and `end` stand above `range`, which counts back from `end`; `end` is now by default, this millisecond included. */
function parseTimeRange(query: Query, now: number): TimeRange {
  const lengthMs = RANGES[choice(query, "range", keysOf(RANGES), "24h")];
  const stepMs = GROUPS[choice(query, "groupBy", keysOf(GROUPS), "hour")];
  const endMs = parseMoment(query, "end") ?? now + 1;
  const startMs = parseMoment(query, "start") ?? endMs - lengthMs;
  if (startMs >= endMs) throw badField("start", "invalid_value", "start must be before end");
  return { startMs, endMs, stepMs };
}

/** Milliseconds since 1970, or ISO 8601 (in UTC unless it says otherwise); null when absent. */
function parseMoment(query: Query, name: string): number | null {
  const text = query.get(name);
  if (text === null) return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const moment = isIsoDateTime(text) ? parseIsoDateTime(text) : Number.NaN;
  if (Number.isNaN(moment)) {
    throw badField(name, "invalid_value", `${name} must be milliseconds since 1970 or an ISO 8601 time, got "${text}"`);
  }
  return moment;
}

/** The first point at or before the start, the last one before the end. */
export function pointsOf({ startMs, endMs, stepMs }: TimeRange): { firstMs: number; lastMs: number } {
  return {
    firstMs: Math.floor(startMs / stepMs) * stepMs,
    lastMs: Math.floor((endMs - 1) / stepMs) * stepMs,
  };
}

function checkPoints(range: TimeRange): void {
  const { firstMs, lastMs } = pointsOf(range);
  const points = (lastMs - firstMs) / range.stepMs + 1;
  if (points <= SERIES_POINTS_MAX) return;
  const message = `This range has ${points} points, at most ${SERIES_POINTS_MAX} are given: group by longer steps`;
  throw badField("groupBy", "invalid_value", message);
}

/** null: all. `category` and `excludeCategory` take several, separated by commas. */
function parseCategories(query: Query): readonly RouteArea[] | null {
  const wanted = categoryList(query, "category");
  const unwanted = categoryList(query, "excludeCategory");
  if (wanted === null && unwanted === null) return null;
  return (wanted ?? ROUTE_AREAS).filter((category) => unwanted?.includes(category) !== true);
}

function categoryList(query: Query, name: string): readonly RouteArea[] | null {
  const text = query.get(name);
  if (text === null) return null;
  return text.split(",").map((word) => requireChoice(name, word.trim(), ROUTE_AREAS));
}

function choice<const T extends string>(query: Query, name: string, choices: readonly T[], fallback: T): T {
  const text = query.get(name);
  return text === null ? fallback : requireChoice(name, text, choices);
}

function requireChoice<const T extends string>(name: string, text: string, choices: readonly T[]): T {
  const found = choices.find((one) => one === text);
  if (found === undefined) {
    throw badField(name, "invalid_value", `${name} must be one of ${choices.join(", ")}, got "${text}"`);
  }
  return found;
}

/** The object is a literal above: it has no other keys than its type says. */
const keysOf = <T extends object>(object: T): (keyof T & string)[] => Object.keys(object) as (keyof T & string)[];
