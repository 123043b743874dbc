import type { AnswerListener } from "../../http/http.ts";
import { areaOf, type RouteArea } from "../../http/route-area.ts";
import type { Clock } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import { WAITING_REQUEST_ROWS_MAX } from "../limits.ts";
import type { RequestRow } from "../types.ts";

export interface RequestLog {
  /** Counts an answer. It runs for every request, so it only adds to counters. */
  readonly record: AnswerListener;
  /** Removes and returns the waiting rows. */
  take(): RequestRow[];
  /** Counts requests that were not written. */
  drop(requests: number): void;
  /** Requests lost since the start: too many rows were waiting, or a write failed. */
  readonly dropped: number;
}

/** The rows of an endpoint in the current second, by user. */
interface Endpoint {
  method: string;
  route: string;
  category: RouteArea;
  rows: Map<string, RequestRow[]>;
}

/** The label of all paths that match no route; clients can invent any number of them. */
const NO_ROUTE = "(none)";

/**
 * Requests with the same endpoint, status and user share one row per second: an endpoint under load costs one row a second,
 * and no query has a finer resolution. Paths are patterns, so their number is that of the endpoints.
 */
export function createRequestLog(deps: { clock: Clock; onRow: () => void }): RequestLog {
  const { clock, onRow } = deps;
  const endpoints = new Map<string | null, Map<string, Endpoint>>();
  let active: Endpoint[] = [];
  let rows: RequestRow[] = [];
  let second = 0;
  let dropped = 0;

  const begin = (now: number): void => {
    second = now;
    for (const endpoint of active) endpoint.rows.clear();
    active = [];
  };
  const addEndpoint = (route: string | null, method: string): Endpoint => {
    const byMethod = endpoints.get(route) ?? new Map<string, Endpoint>();
    endpoints.set(route, byMethod);
    const label = route?.replace(/(?<=.)\/$/, "") ?? NO_ROUTE;
    const endpoint = { method, route: label, category: areaOf(route), rows: new Map() };
    byMethod.set(method, endpoint);
    return endpoint;
  };
  const addRow = (endpoint: Endpoint, status: number, userId: string): RequestRow => {
    const { method, route, category } = endpoint;
    const row = { second, method, route, category, status, userId, requests: 0, durationUs: 0 };
    const ofUser = endpoint.rows.get(userId);
    if (endpoint.rows.size === 0) active.push(endpoint);
    if (ofUser === undefined) endpoint.rows.set(userId, [row]);
    else ofUser.push(row);
    rows.push(row);
    if (rows.length === 1) onRow();
    return row;
  };

  return {
    record({ request, route, status, durationMs, principal }) {
      const now = Math.floor(clock.now() / SECOND_MS);
      if (now !== second) begin(now);
      const { method } = request;
      const endpoint = endpoints.get(route)?.get(method) ?? addEndpoint(route, method);
      const userId = principal.kind === "user" ? principal.auth.id : "";
      let row = endpoint.rows.get(userId)?.find((one) => one.status === status);
      if (row === undefined) {
        if (rows.length >= WAITING_REQUEST_ROWS_MAX) {
          dropped += 1;
          return;
        }
        row = addRow(endpoint, status, userId);
      }
      row.requests += 1;
      row.durationUs += Math.round(durationMs * 1000);
    },
    take() {
      const taken = rows;
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
