import type { Clock } from "../../../../kernel/clock.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { AnswerListener } from "../../../http/exchange/request-context.ts";
import { MINUTE_S, WAITING_REQUEST_ROWS_MAX } from "../limits.ts";
import type { LatencyRow, RequestRow } from "../types.ts";
import { createEndpoints, type Endpoint } from "./endpoints.ts";
import { createHistograms } from "./histograms.ts";
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
 * Requests with the same endpoint, status and user share one row per second: an endpoint under load costs one row a second,
 * and no query has a finer resolution.
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
