import type { RouteArea } from "../http/route-area.ts";
import type { JsonPrimitive } from "../kernel/json.ts";

/** A validated event. */
export interface TrackedEvent {
  name: string;
  /** Milliseconds since 1970. */
  timestamp: number;
  /** null: no user. */
  userId: string | null;
  /** JSON text of a flat object. */
  properties: string;
}

/** All requests of one second with the same endpoint, status and user. */
export interface RequestRow {
  /** Seconds since 1970. */
  second: number;
  method: string;
  /** The pattern of the path. */
  route: string;
  category: RouteArea;
  status: number;
  /** Empty: not signed in. */
  userId: string;
  requests: number;
  /** The total of these requests. */
  durationUs: number;
}

/** `startMs` is inclusive, `endMs` exclusive. Points of a series are multiples of `stepMs` in UTC. */
export interface TimeRange {
  startMs: number;
  endMs: number;
  stepMs: number;
}

export type RequestMetric = "overview" | "timeSeries" | "breakdown" | "topEndpoints";

export interface RequestQuery {
  metric: RequestMetric;
  range: TimeRange;
  /** null: all. */
  categories: readonly RouteArea[] | null;
}

export type EventMetric = "list" | "count" | "timeSeries" | "topEvents";

export interface EventQuery {
  metric: EventMetric;
  range: TimeRange;
  /** Only events with this name; null: all. */
  event: string | null;
  /** Only events of this user; null: all. */
  userId: string | null;
  limit: number;
  /** The list continues after this event; null: from the newest. */
  after: EventPlace | null;
}

export interface EventPlace {
  timestamp: number;
  id: number;
}

export interface EventAnswer {
  id: string;
  timestamp: number;
  userId: string | null;
  eventName: string;
  properties: Record<string, JsonPrimitive>;
}

export interface EventPage {
  events: EventAnswer[];
  /** null on the last page. */
  cursor: string | null;
  hasMore: boolean;
}

export interface EventCounts {
  totalEvents: number;
  uniqueUsers: number;
}

export interface EventRank {
  eventName: string;
  count: number;
  uniqueUsers: number;
}

/** Sums of requests as stored. */
export interface RequestSums {
  requests: number;
  errors: number;
  durationUs: number;
}

export interface EndpointSums extends RequestSums {
  method: string;
  route: string;
  category: string;
}

/** One entry of `breakdown` or `topItems`; `percentage` and `errorRate` are in percent. */
export interface Share {
  label: string;
  count: number;
  percentage: number;
  /** Milliseconds. */
  avgLatency: number;
  errorRate: number;
}
