import { Type } from "typebox";
import { type OperationParameter, operation, optional } from "../http/operation.ts";
import { ROUTE_AREAS } from "../http/route-area.ts";
import {
  EVENT_NAME_LENGTH_MAX,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  PROPERTIES_MAX,
  PROPERTIES_MAX_BYTES,
  TRACK_EVENTS_MAX,
  USER_ID_LENGTH_MAX,
} from "./limits.ts";
import { EVENT_METRICS, GROUPS, RANGES, REQUEST_METRICS } from "./query-parameters.ts";

const tag = "Analytics";
const Count = Type.Integer({ minimum: 0 });
const Timestamp = Type.Integer({ description: "Milliseconds since 1970" });
const Percent = Type.Number({ minimum: 0, maximum: 100 });
const Latency = Type.Number({ minimum: 0, description: "Milliseconds" });
const Value = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
const Properties = Type.Record(Type.String(), Value, {
  maxProperties: PROPERTIES_MAX,
  description: `Flat; at most ${PROPERTIES_MAX_BYTES} bytes of JSON`,
});
const UserId = Type.Union([Type.String(), Type.Null()]);

const Share = Type.Object({
  ...{ label: Type.String(), count: Count, percentage: Percent, avgLatency: Latency },
  errorRate: Type.Number({ minimum: 0, maximum: 100, description: "Percent" }),
});
const Point = Type.Object({
  ...{ timestamp: Timestamp, requests: Count, errors: Count, avgLatency: Latency, uniqueUsers: Count },
});
const Summary = Type.Object({ totalRequests: Count, totalErrors: Count, avgLatency: Latency, uniqueUsers: Count });
const Event = Type.Object({
  ...{ id: Type.String(), timestamp: Timestamp, userId: UserId, eventName: Type.String(), properties: Properties },
});

const parameter = (name: string, description: string, schema = Type.String()): OperationParameter => ({
  ...{ name, description, schema },
});
const oneOf = (names: readonly string[], fallback: string) => Type.String({ enum: [...names], default: fallback });
const metric = (names: readonly string[], fallback: string): OperationParameter => ({
  ...{ name: "metric", description: "What is wanted", schema: oneOf(names, fallback) },
});
const RANGE: OperationParameter[] = [
  { name: "range", description: "How far back from `end`", schema: oneOf(Object.keys(RANGES), "24h") },
  parameter("start", "Instead of `range`: the first moment, in milliseconds since 1970 or ISO 8601"),
  parameter("end", "The moment after the last; now by default"),
  { name: "groupBy", description: "The steps of a series, in UTC", schema: oneOf(Object.keys(GROUPS), "hour") },
];
const CATEGORIES = `One or more of ${ROUTE_AREAS.join(", ")}, separated by commas`;

export const DESCRIPTIONS = {
  track: operation({
    ...{ tag, summary: "Keep events", security: "rules" },
    description: "On disk within a second. All events are kept, or none. Limited by address, for service keys too.",
    body: {
      schema: Type.Object({
        events: Type.Array(
          Type.Object({
            name: Type.String({ minLength: 1, maxLength: EVENT_NAME_LENGTH_MAX }),
            properties: optional(Properties),
            timestamp: optional(
              Type.Integer({ description: "Milliseconds since 1970, within the last 90 days; now by default" }),
            ),
            userId: optional(
              Type.String({ minLength: 1, maxLength: USER_ID_LENGTH_MAX, description: "Service keys only" }),
            ),
          }),
          { minItems: 1, maxItems: TRACK_EVENTS_MAX },
        ),
      }),
    },
    answers: { 200: { description: "Kept", schema: Type.Object({ ok: Type.Literal(true), count: Count }) } },
    errors: [400, 401, 403, 413, 415, 503],
  }),
  query: operation({
    ...{ tag, summary: "Requests, errors and latency", security: "serviceKey" },
    description: "From the request log. Errors are answers of 5xx; users are those who were signed in.",
    query: [
      metric(REQUEST_METRICS, "overview"),
      ...RANGE,
      parameter("category", CATEGORIES),
      parameter("excludeCategory", CATEGORIES),
    ],
    answers: {
      200: {
        description: "`overview` has all members, the other metrics one",
        schema: Type.Object({
          timeSeries: Type.Optional(Type.Array(Point)),
          summary: Type.Optional(Summary),
          breakdown: Type.Optional(Type.Array(Share, { description: "By category" })),
          topItems: Type.Optional(Type.Array(Share, { description: "By endpoint" })),
        }),
      },
    },
    errors: [400, 401, 403, 408, 503],
  }),
  events: operation({
    ...{ tag, summary: "Events, their numbers and names", security: "serviceKey" },
    query: [
      metric(EVENT_METRICS, "list"),
      ...RANGE,
      parameter("event", "Only events of this name"),
      parameter("userId", "Only events of this user"),
      {
        ...{ name: "limit", description: "Of `list` and `topEvents`" },
        schema: Type.Integer({ minimum: 1, maximum: LIST_LIMIT_MAX, default: LIST_LIMIT_DEFAULT }),
      },
      parameter("cursor", "Of the page before; of `list`"),
    ],
    answers: {
      200: {
        description: "The shape of `list`, `count`, `timeSeries` or `topEvents`",
        schema: Type.Union([
          Type.Object({
            events: Type.Array(Event),
            cursor: Type.Union([Type.String(), Type.Null()]),
            hasMore: Type.Boolean(),
          }),
          Type.Object({ totalEvents: Count, uniqueUsers: Count }),
          Type.Object({ timeSeries: Type.Array(Type.Object({ timestamp: Timestamp, count: Count })) }),
          Type.Object({
            topEvents: Type.Array(Type.Object({ eventName: Type.String(), count: Count, uniqueUsers: Count })),
          }),
        ]),
      },
    },
    errors: [400, 401, 403, 408, 503],
  }),
};
