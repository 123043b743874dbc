import { type Static, type TObject, Type } from "typebox";
import { badField } from "../../../kernel/errors.ts";
import { decodeCursor } from "../../../kernel/records/page-cursor.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../kernel/time/duration.ts";
import { momentOf } from "../../../kernel/time/iso-datetime.ts";
import { ROUTE_AREAS, type RouteArea } from "../../http/route-area.ts";
import {
  EVENT_NAME_LENGTH_MAX,
  FUNNEL_STEPS_MAX,
  FUNNEL_STEPS_MIN,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  SERIES_POINTS_MAX,
} from "./limits.ts";
import type { EventPlace, EventQuery, RequestQuery, TimeRange } from "./model.ts";
import { LIST_LIMIT_DEFAULT as STORIES_LIMIT_DEFAULT, STORIES_MAX } from "./stories/limits.ts";

const RANGES = {
  "1h": HOUR_MS,
  "6h": 6 * HOUR_MS,
  "24h": DAY_MS,
  "7d": 7 * DAY_MS,
  "30d": 30 * DAY_MS,
  "90d": 90 * DAY_MS,
} as const;
const GROUPS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;

const text = (description: string) => Type.Optional(Type.String({ description }));

const RANGE = {
  range: Type.Optional(
    Type.Enum(["1h", "6h", "24h", "7d", "30d", "90d"], { default: "24h", description: "Counted back from `end`" }),
  ),
  start: text("Replaces `range`: the first moment, in milliseconds since 1970 or ISO 8601"),
  end: text("The moment after the last one; the current time by default"),
  groupBy: Type.Optional(
    Type.Enum(["minute", "hour", "day"], { default: "hour", description: "The steps of a time series, in UTC" }),
  ),
};
const CATEGORIES = `One or more of ${ROUTE_AREAS.join(", ")}, separated by commas`;

export const REQUEST_PARAMETERS = {
  metric: Type.Optional(
    Type.Enum(["overview", "timeSeries", "breakdown", "topEndpoints", "targets"], {
      default: "overview",
      description: "The part of the report",
    }),
  ),
  ...RANGE,
  category: text(CATEGORIES),
  excludeCategory: text(CATEGORIES),
};

export const EVENT_PARAMETERS = {
  metric: Type.Optional(
    Type.Enum(["list", "count", "timeSeries", "topEvents", "funnel"], {
      default: "list",
      description: "The kind of report",
    }),
  ),
  ...RANGE,
  event: text("Only events with this name"),
  userId: text("Only events of this user"),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIST_LIMIT_MAX,
      default: LIST_LIMIT_DEFAULT,
      description: "Entries of `list` and `topEvents`",
    }),
  ),
  cursor: text("The `cursor` of the previous page of `list`"),
  steps: text('Names of the events of `funnel`, two to five, as JSON: `["signed up", "paid"]`'),
};

const SPAN = {
  from: text("The first moment, in milliseconds since 1970 or ISO 8601"),
  to: text("The moment after the last one"),
};

export const STORY_PARAMETERS = {
  ...SPAN,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: STORIES_MAX, default: STORIES_LIMIT_DEFAULT })),
};

export const SLOW_PARAMETERS = {
  ...SPAN,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIST_LIMIT_MAX, default: LIST_LIMIT_DEFAULT })),
  cursor: text("The `cursor` of the previous page"),
};

export type SlowParameters = Static<TObject<typeof SLOW_PARAMETERS>>;
export type RequestParameters = Static<TObject<typeof REQUEST_PARAMETERS>>;
export type EventParameters = Static<TObject<typeof EVENT_PARAMETERS>>;

/** Parses the parameters of a report on requests. Errors: 400 naming the parameter. */
export function parseRequestQuery(parameters: RequestParameters, now: number): RequestQuery {
  const { metric = "overview" } = parameters;
  const range = parseTimeRange(parameters, now);
  if (metric === "overview" || metric === "timeSeries") checkPoints(range);
  return { metric, range, categories: parseCategories(parameters) };
}

/** Parses the parameters of a report on events. Errors: 400 naming the parameter. */
export function parseEventQuery(parameters: EventParameters, now: number): EventQuery {
  const { metric = "list", event = null, userId = null, limit = LIST_LIMIT_DEFAULT, cursor } = parameters;
  const steps = metric === "funnel" ? parseSteps(parameters.steps) : [];
  const range = parseTimeRange(parameters, now);
  if (metric === "timeSeries") checkPoints(range);
  return { metric, range, steps, event, userId, limit, after: cursor === undefined ? null : eventPlace(cursor) };
}

function eventPlace(cursor: string): EventPlace {
  const [timestamp, id] = decodeCursor(cursor, 2);
  return { timestamp, id };
}

const isName = (value: unknown): boolean =>
  typeof value === "string" && value !== "" && value.length <= EVENT_NAME_LENGTH_MAX;

function parseSteps(text: string | undefined): string[] {
  if (text === undefined) throw badField("steps", "required", "A funnel needs steps");
  let steps: unknown = null;
  try {
    steps = JSON.parse(text);
  } catch {
    // Invalid JSON is refused below, like any other value that is no list of names.
  }
  const isSteps = Array.isArray(steps) && steps.length >= FUNNEL_STEPS_MIN && steps.length <= FUNNEL_STEPS_MAX;
  if (isSteps && (steps as unknown[]).every(isName)) return steps as string[];
  const message = `steps must be a JSON array of ${FUNNEL_STEPS_MIN} to ${FUNNEL_STEPS_MAX} names of events`;
  throw badField("steps", "invalid_value", message);
}

/** Parses the range of time. `end` defaults to one millisecond after now, so that it includes the current millisecond. */
function parseTimeRange(parameters: RequestParameters | EventParameters, now: number): TimeRange {
  const { range = "24h", groupBy = "hour", start, end } = parameters;
  const endMs = end === undefined ? now + 1 : momentOf("end", end);
  const startMs = start === undefined ? endMs - RANGES[range] : momentOf("start", start);
  if (startMs >= endMs) throw badField("start", "invalid_value", "start must be before end");
  return { startMs, endMs, stepMs: GROUPS[groupBy] };
}

/** Returns the first point of a series, at or before the start, and the last one, before the end. */
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
  const message = `The time series must have at most ${SERIES_POINTS_MAX} points, got ${points}: use a longer groupBy`;
  throw badField("groupBy", "invalid_value", message);
}

/** Parses the filter of categories; null: all categories. */
function parseCategories({ category, excludeCategory }: RequestParameters): readonly RouteArea[] | null {
  if (category === undefined && excludeCategory === undefined) return null;
  const included = category === undefined ? ROUTE_AREAS : parseAreas("category", category);
  const excluded = excludeCategory === undefined ? [] : parseAreas("excludeCategory", excludeCategory);
  return included.filter((area) => !excluded.includes(area));
}

function parseAreas(name: string, value: string): RouteArea[] {
  return value.split(",").map((word) => {
    const area = ROUTE_AREAS.find((one) => one === word.trim());
    if (area !== undefined) return area;
    const message = `${name} must be one of ${ROUTE_AREAS.join(", ")}, got "${word.trim()}"`;
    throw badField(name, "invalid_value", message);
  });
}
