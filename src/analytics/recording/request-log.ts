import type { AnswerListener } from "../../http/http.ts";
import { areaOf, type RouteArea } from "../../http/route-area.ts";
import type { Clock } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/duration.ts";
import { WAITING_REQUEST_ROWS_MAX } from "../limits.ts";
import type { RequestRow } from "../types.ts";

export interface RequestLog {
  /** Counts an answer: part of every request, so it does nothing but add. */
  readonly record: AnswerListener;
  /** The rows that wait to be written; they are the caller's from then on. */
  take(): RequestRow[];
  /** Counts requests that are lost. */
  drop(requests: number): void;
  /** Requests since the start that were lost: too many rows waited, or the file took none. */
  readonly dropped: number;
}

/** What has been seen of an endpoint in this second, by user. */
interface Endpoint {
  method: string;
  route: string;
  category: RouteArea;
  rows: Map<string, RequestRow[]>;
}

/** The label of what no route matched: its paths are anybody's invention. */
const NO_ROUTE = "(none)";

/**
 * Requests alike (endpoint, status, user) of one second become one row: an endpoint under load costs a row a second, and
 * no answer the interface gives is finer than that. Paths are patterns, so that there are no more than endpoints.
 */
export function createRequestLog(deps: { clock: Clock; onRow: () => void }): RequestLog {
  const { clock, onRow } = deps;
  const endpoints = new Map<string | null, Map<string, Endpoint>>();
  let seen: Endpoint[] = [];
  let rows: RequestRow[] = [];
  let second = 0;
  let dropped = 0;

  const begin = (now: number): void => {
    second = now;
    for (const endpoint of seen) endpoint.rows.clear();
    seen = [];
  };
  const endpointOf = (route: string | null, method: string): Endpoint => {
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
    if (endpoint.rows.size === 0) seen.push(endpoint);
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
      const endpoint = endpoints.get(route)?.get(method) ?? endpointOf(route, method);
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
