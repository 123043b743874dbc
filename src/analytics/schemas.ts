import { type Static, Type } from "typebox";
import { nullable } from "../kernel/schema/types.ts";
import { Properties } from "./track.ts";

// The answers of the endpoints, with the types that follow from them.

const Count = Type.Integer({ minimum: 0 });
const Percent = Type.Number({ minimum: 0, maximum: 100, description: "Percent" });
const Latency = Type.Number({ minimum: 0, description: "Milliseconds" });
const Timestamp = Type.Integer({ description: "Milliseconds since 1970" });

export const Tracked = Type.Object(
  { ok: Type.Literal(true), count: Count },
  { description: "The number of events stored" },
);

const Share = Type.Object({
  label: Type.String(),
  count: Count,
  percentage: Percent,
  avgLatency: Latency,
  errorRate: Percent,
});
/** One entry of `breakdown` or `topItems`. */
export type Share = Static<typeof Share>;

const Point = Type.Object({
  timestamp: Timestamp,
  requests: Count,
  errors: Count,
  avgLatency: Latency,
  uniqueUsers: Count,
});
const Summary = Type.Object({ totalRequests: Count, totalErrors: Count, avgLatency: Latency, uniqueUsers: Count });

export const RequestReport = Type.Object(
  {
    timeSeries: Type.Optional(Type.Array(Point)),
    summary: Type.Optional(Summary),
    breakdown: Type.Optional(Type.Array(Share, { description: "By category" })),
    topItems: Type.Optional(Type.Array(Share, { description: "By endpoint" })),
  },
  { description: "`overview` has all members, every other metric has one" },
);

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

export const EventReport = Type.Union([EventPage, EventCounts, EventSeries, EventRanks], {
  description: "The answer of `list`, `count`, `timeSeries` or `topEvents`",
});
