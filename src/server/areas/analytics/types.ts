import type { RouteArea } from "../../http/route-area.ts";
import type { Latencies } from "./recording/latency-buckets.ts";

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
  /** Empty: none. */
  target: string;
  status: number;
  /** Empty: not signed in. */
  userId: string;
  requests: number;
  /** The total of these requests. */
  durationUs: number;
}

/** The requests of one minute in one bucket of an endpoint's histogram. */
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

/** `startMs` is inclusive, `endMs` exclusive. Points of a series are multiples of `stepMs` in UTC. */
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
  /** The names of a funnel, in order; empty for other reports. */
  steps: readonly string[];
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

/** Sums of requests as stored. */
export interface RequestSums {
  requests: number;
  /** Answers with a 5xx status. */
  errors: number;
  errors4xx: number;
  durationUs: number;
}

/** The sums of a method, a route and a target. */
export interface EndpointSums extends RequestSums {
  method: string;
  route: string;
  category: string;
  /** Empty: none. */
  target: string;
  /** Their number may be smaller than that of the requests: rows from before there were histograms have none. */
  latencies: Latencies;
}
