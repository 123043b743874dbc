import type { RouteArea } from "../http/route-area.ts";
import type { JsonPrimitive } from "../kernel/json.ts";

/** A tracked event, checked. Spec: Analytics event; decisions 11. */
export interface TrackedEvent {
  name: string;
  /** Milliseconds since 1970. */
  timestamp: number;
  /** null: nobody is named. */
  userId: string | null;
  /** JSON text of a flat object. */
  properties: string;
}

/** Requests alike of one second: the request log holds no single ones. */
export interface RequestRow {
  /** Seconds since 1970. */
  second: number;
  method: string;
  /** The pattern of the path. */
  route: string;
  category: RouteArea;
  status: number;
  /** Empty: nobody signed in. */
  userId: string;
  requests: number;
  /** Of all of them together. */
  durationUs: number;
}

/** From `startMs`, up to and without `endMs`, in steps of `stepMs` that begin at whole ones in UTC. */
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
  /** Of this name alone; null: all. */
  event: string | null;
  /** Of this user alone; null: all. */
  userId: string | null;
  limit: number;
  /** Events before this one, newest first; null: from the newest. */
  after: EventPlace | null;
}

export interface EventPlace {
  timestamp: number;
  id: number;
}

/** Decisions 11. */
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

/** Sums of requests as they come from the file. */
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

/** One line of `breakdown` and `topItems`; shares are in percent. */
export interface Share {
  label: string;
  count: number;
  percentage: number;
  /** Milliseconds. */
  avgLatency: number;
  errorRate: number;
}
