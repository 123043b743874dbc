import type { Clock } from "../../../kernel/clock.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { Answered, AnswerListener } from "../../http/exchange/request-context.ts";
import { areaOf, type RouteArea } from "../../http/route-area.ts";
import { BUCKETS, bucketOf } from "./latency-buckets.ts";
import { MINUTE_S, WAITING_REQUEST_ROWS_MAX } from "./limits.ts";
import type { LatencyRow, RequestRow } from "./model.ts";
import type { TargetOf } from "./targets.ts";

export interface RequestLog {
  /** Counts an answer. It runs for every request, so it only adds to counters. */
  readonly record: AnswerListener;
  /** Removes and returns the waiting rows. */
  take(): { requests: RequestRow[]; latencies: LatencyRow[] };
  /** Counts requests that were not written. */
  drop(requests: number): void;
  /** Requests lost since the start: too many rows were waiting, or a write failed. */
  readonly dropped: number;
}

/**
 * Creates the request log. Requests with the same endpoint, status and user share one row per second: an endpoint under load costs
 * one row per second, and no query has a finer resolution.
 */
export function createRequestLog(deps: {
  clock: Clock;
  targets: (route: string | null) => TargetOf | null;
  onRow: () => void;
}): RequestLog {
  const { clock, onRow } = deps;
  const endpointOf = createEndpoints(deps.targets);
  const histograms = createHistograms();
  let active: Endpoint[] = [];
  let rows: RequestRow[] = [];
  let second = 0;
  let dropped = 0;

  const minuteOf = (at: number): number => Math.floor(at / MINUTE_S);
  const begin = (now: number): void => {
    if (minuteOf(now) !== minuteOf(second)) histograms.end(minuteOf(second));
    second = now;
    for (const endpoint of active) endpoint.rows.clear();
    active = [];
  };
  const addRow = (endpoint: Endpoint, status: number, userId: string): RequestRow => {
    const { method, route, category, target } = endpoint;
    const row = { second, method, route, category, target, status, userId, requests: 0, durationUs: 0 };
    const ofUser = endpoint.rows.get(userId);
    if (endpoint.rows.size === 0) active.push(endpoint);
    if (ofUser === undefined) endpoint.rows.set(userId, [row]);
    else ofUser.push(row);
    rows.push(row);
    if (rows.length === 1) onRow();
    return row;
  };

  return {
    record(answered) {
      const now = Math.floor(clock.now() / SECOND_MS);
      if (now !== second) begin(now);
      const { status, principal, durationMs } = answered;
      const endpoint = endpointOf(answered);
      const userId = principal.kind === "user" ? principal.auth.id : "";
      let row = endpoint.rows.get(userId)?.find((one) => one.status === status);
      if (row === undefined) {
        if (rows.length >= WAITING_REQUEST_ROWS_MAX) {
          dropped += 1;
          return;
        }
        row = addRow(endpoint, status, userId);
      }
      const durationUs = Math.round(durationMs * 1000);
      row.requests += 1;
      row.durationUs += durationUs;
      histograms.add(endpoint, durationUs);
    },
    take() {
      const taken = { requests: rows, latencies: histograms.take(minuteOf(second)) };
      rows = [];
      begin(second);
      return taken;
    },
    drop(requests) {
      dropped += requests;
    },
    get dropped() {
      return dropped;
    },
  };
}

/** Endpoint: a method, route and target, with its rows of the current second, by user, and its histogram. */
interface Endpoint extends Measured {
  rows: Map<string, RequestRow[]>;
}

interface Route {
  label: string;
  category: RouteArea;
  targetOf: TargetOf | null;
  byTarget: Map<string, Endpoint>;
}

/** Label shared by all paths that match no route, as clients can invent any number of them. */
const NO_ROUTE = "(none)";

/** Creates a function that finds the endpoint of a request. Paths are patterns and targets are declared, so endpoints are bounded. */
function createEndpoints(targets: (route: string | null) => TargetOf | null): (answered: Answered) => Endpoint {
  const routes = new Map<string | null, Map<string, Route>>();
  const addRoute = (route: string | null, method: string): Route => {
    const byMethod = routes.get(route) ?? new Map<string, Route>();
    routes.set(route, byMethod);
    const label = route?.replace(/(?<=.)\/$/, "") ?? NO_ROUTE;
    const added = { label, category: areaOf(route), targetOf: targets(route), byTarget: new Map() };
    byMethod.set(method, added);
    return added;
  };
  return (answered) => {
    const { route: pattern, request } = answered;
    const { method } = request;
    const route = routes.get(pattern)?.get(method) ?? addRoute(pattern, method);
    const target = route.targetOf === null ? "" : route.targetOf(answered);
    const known = route.byTarget.get(target);
    if (known !== undefined) return known;
    const { label, category } = route;
    const counters = { rows: new Map<string, RequestRow[]>(), latencies: null, hasLatencies: false };
    const endpoint: Endpoint = { method, route: label, category, target, ...counters };
    route.byTarget.set(target, endpoint);
    return endpoint;
  };
}

/** Endpoint with its histogram of the current minute. */
interface Measured extends Pick<LatencyRow, "method" | "route" | "category" | "target"> {
  /** Requests by bucket; null before the first request. */
  latencies: Uint32Array | null;
  hasLatencies: boolean;
}

/** Histograms of the current minute, and waiting rows of earlier ones. */
function createHistograms() {
  let active: Measured[] = [];
  let waiting: LatencyRow[] = [];
  /** Ends a minute: turns what was added into waiting rows of this minute. */
  const end = (minute: number): void => {
    for (const endpoint of active) {
      const { method, route, category, target, latencies } = endpoint;
      for (const [bucket, requests] of latencies?.entries() ?? []) {
        if (requests > 0) waiting.push({ minute, method, route, category, target, bucket, requests });
      }
      latencies?.fill(0);
      endpoint.hasLatencies = false;
    }
    active = [];
  };
  return {
    /** Adds a request to its endpoint's histogram. Runs for every request. */
    add(endpoint: Measured, durationUs: number): void {
      endpoint.latencies ??= new Uint32Array(BUCKETS);
      if (!endpoint.hasLatencies) {
        endpoint.hasLatencies = true;
        active.push(endpoint);
      }
      const bucket = bucketOf(durationUs);
      endpoint.latencies[bucket] = (endpoint.latencies[bucket] ?? 0) + 1;
    },
    end,
    /** Ends a minute like `end`; removes and returns the waiting rows. */
    take(minute: number): LatencyRow[] {
      end(minute);
      const taken = waiting;
      waiting = [];
      return taken;
    },
  };
}
