import { type Static, Type } from "typebox";
import { nullable, refine } from "../../../kernel/schema/types.ts";
import type { RouteArea } from "../../http/route-area.ts";
import type { Latencies } from "./latency-buckets.ts";
import { PROPERTIES_MAX, PROPERTIES_MAX_BYTES } from "./limits.ts";

/** Validated event. */
export interface TrackedEvent {
  name: string;
  /** Milliseconds since 1970. */
  timestamp: number;
  /** Id of the user; null: no user. */
  userId: string | null;
  /** JSON text of a flat object. */
  properties: string;
}

/** Row for all requests of one second with the same endpoint, status and user. */
export interface RequestRow {
  /** Seconds since 1970. */
  second: number;
  method: string;
  /** Pattern of the path. */
  route: string;
  category: RouteArea;
  /** Empty: none. */
  target: string;
  status: number;
  /** Empty: not signed in. */
  userId: string;
  requests: number;
  /** Total latency of these requests, in microseconds. */
  durationUs: number;
}

/** Row for the requests of one minute in one bucket of an endpoint's histogram. */
export interface LatencyRow {
  /** Minutes since 1970. */
  minute: number;
  method: string;
  route: string;
  category: RouteArea;
  target: string;
  bucket: number;
  requests: number;
}

/** Range of time. `startMs` is inclusive, `endMs` exclusive. Points of a series are multiples of `stepMs` in UTC. */
export interface TimeRange {
  startMs: number;
  endMs: number;
  stepMs: number;
}

export interface RequestQuery {
  metric: "overview" | "timeSeries" | "breakdown" | "topEndpoints" | "targets";
  range: TimeRange;
  /** null: all. */
  categories: readonly RouteArea[] | null;
}

export interface EventQuery {
  metric: "list" | "count" | "timeSeries" | "topEvents" | "funnel";
  range: TimeRange;
  /** Names of a funnel's steps, in order; empty for other reports. */
  steps: readonly string[];
  /** Name of the events; null: all. */
  event: string | null;
  /** User of the events; null: all. */
  userId: string | null;
  limit: number;
  /** Event after which the list continues; null: from the newest. */
  after: EventPlace | null;
}

export interface EventPlace {
  timestamp: number;
  id: number;
}

/** Sums of requests as stored. */
export interface RequestSums {
  requests: number;
  /** Answers with a 5xx status. */
  errors: number;
  errors4xx: number;
  durationUs: number;
}

/** Sums of a method, a route and a target. */
export interface EndpointSums extends RequestSums {
  method: string;
  route: string;
  category: string;
  /** Empty: none. */
  target: string;
  /** Histogram. It may count fewer than `requests`: rows older than histograms have none. */
  latencies: Latencies;
}

// Schemas of the endpoints' answers, with the types derived from them.

const Count = Type.Integer({ minimum: 0 });
const Percent = Type.Number({ minimum: 0, maximum: 100, description: "Percent" });
const Latency = Type.Number({ minimum: 0, description: "Milliseconds" });
const Timestamp = Type.Integer({ description: "Milliseconds since 1970" });

export const Tracked = Type.Object(
  { ok: Type.Literal(true), count: Count },
  { description: "The number of events stored" },
);

const Percentiles = { p50: Latency, p95: Latency, p99: Latency };
const Errors4xx = Type.Integer({ minimum: 0, description: "Answers with a 4xx status" });

const Share = Type.Object({
  label: Type.String(),
  count: Count,
  percentage: Percent,
  avgLatency: Latency,
  ...Percentiles,
  errorRate: Percent,
  errors4xx: Errors4xx,
});
/** Entry of `breakdown` or `topItems`. */
export type Share = Static<typeof Share>;

const Point = Type.Object({
  timestamp: Timestamp,
  requests: Count,
  errors: Count,
  errors4xx: Errors4xx,
  avgLatency: Latency,
  ...Percentiles,
  uniqueUsers: Count,
});
const Summary = Type.Object({
  totalRequests: Count,
  totalErrors: Count,
  errors4xx: Errors4xx,
  avgLatency: Latency,
  ...Percentiles,
  uniqueUsers: Count,
});

const Target = Type.Object({
  method: Type.String(),
  route: Type.String({ description: "The pattern of the path" }),
  target: nullable(Type.String({ description: "A table, bucket, room type or other resource of the config" })),
  requests: Count,
  errors4xx: Errors4xx,
  errors5xx: Count,
  avgLatency: Latency,
  ...Percentiles,
});
/** Entry of `targets`. */
export type Target = Static<typeof Target>;

export const RequestReport = Type.Object(
  {
    timeSeries: Type.Optional(Type.Array(Point)),
    summary: Type.Optional(Summary),
    breakdown: Type.Optional(Type.Array(Share, { description: "By category" })),
    topItems: Type.Optional(Type.Array(Share, { description: "By endpoint" })),
    targets: Type.Optional(Type.Array(Target, { description: "With `metric=targets`" })),
  },
  { description: "`overview` has all members but `targets`, every other metric has one" },
);

/** Schema of a property's value. Not a union, whose members would require well-formed text, while JSON can store any text. */
const Value = refine(
  Type.Unsafe<string | number | boolean>({ type: ["string", "number", "boolean"] }),
  (value) => ["string", "number", "boolean"].includes(typeof value),
  (field) => ({ code: "invalid_type", message: `${field} must be a string, a number or a boolean` }),
);

export const Properties = Type.Record(Type.String(), Value, {
  maxProperties: PROPERTIES_MAX,
  description: `A flat object of at most ${PROPERTIES_MAX_BYTES} bytes of JSON`,
});

const Event = Type.Object({
  id: Type.String(),
  timestamp: Timestamp,
  userId: nullable(Type.String()),
  eventName: Type.String(),
  properties: Properties,
});

const EventPage = Type.Object({
  events: Type.Array(Event),
  cursor: nullable(Type.String({ description: "null on the last page" })),
  hasMore: Type.Boolean(),
});
export type EventPage = Static<typeof EventPage>;

const EventCounts = Type.Object({ totalEvents: Count, uniqueUsers: Count });
export type EventCounts = Static<typeof EventCounts>;

const EventSeries = Type.Object({ timeSeries: Type.Array(Type.Object({ timestamp: Timestamp, count: Count })) });

const EventRank = Type.Object({ eventName: Type.String(), count: Count, uniqueUsers: Count });
export type EventRank = Static<typeof EventRank>;

const EventRanks = Type.Object({ topEvents: Type.Array(EventRank) });

const FunnelStep = Type.Object({ eventName: Type.String(), users: Count });
export type FunnelStep = Static<typeof FunnelStep>;

const Funnel = Type.Object({ funnel: Type.Array(FunnelStep) });

export const EventReport = Type.Union([EventPage, EventCounts, EventSeries, EventRanks, Funnel], {
  description: "The answer of `list`, `count`, `timeSeries`, `topEvents` or `funnel`",
});

const Milliseconds = Type.Number({ minimum: 0, description: "Milliseconds" });
export const SlowRequest = Type.Object({
  at: Type.String({ format: "date-time", description: "When it was answered" }),
  requestId: Type.String(),
  method: Type.String(),
  path: Type.String({ description: "Without the query; of own routes the pattern" }),
  target: nullable(Type.String()),
  status: Type.Integer(),
  principal: Type.Object({
    kind: Type.Enum(["anonymous", "user", "serviceKey", "server"]),
    name: nullable(Type.String({ description: "The user's id or the key's name" })),
  }),
  ms: Milliseconds,
  phases: Type.Object({
    rules: Milliseconds,
    database: Milliseconds,
    hooks: Milliseconds,
    answer: Type.Number({ minimum: 0, description: "The rest" }),
  }),
  rows: Type.Integer({ minimum: 0, description: "Records that it has read or changed" }),
});
export type SlowRequest = Static<typeof SlowRequest>;

export const SlowRequestPage = Type.Object(
  { requests: Type.Array(SlowRequest), cursor: nullable(Type.String({ description: "null on the last page" })) },
  { description: "The newest first" },
);
export type SlowRequestPage = Static<typeof SlowRequestPage>;
