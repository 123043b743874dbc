import { type Static, Type } from "typebox";
import { nullable } from "../../../kernel/schema/types.ts";
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
/** One entry of `breakdown` or `topItems`. */
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
/** One entry of `targets`. */
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
export const SlowRequestPage = Type.Object(
  {
    requests: Type.Array(
      Type.Object({
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
      }),
    ),
    cursor: nullable(Type.String({ description: "null on the last page" })),
  },
  { description: "The newest first" },
);
export type SlowRequestPage = Static<typeof SlowRequestPage>;
