import type { Clock } from "../../../kernel/clock.ts";
import type { TimeSpan } from "../../../kernel/time/iso-datetime.ts";
import type { Principal } from "../../access/principal.ts";
import type { DatabaseFile, ReadCaller } from "../../db/index.ts";
import type { Answered } from "../../http/exchange/request-context.ts";
import {
  SLOW_PATH_LENGTH_MAX,
  SLOW_REQUESTS_MAX,
  SLOW_RETENTION_MS,
  SWEEP_STEP_ROWS,
  WAITING_SLOW_MAX,
} from "./limits.ts";
import type { SlowRequest } from "./model.ts";
import type { TargetOf } from "./targets.ts";

export type SlowRecorder = ReturnType<typeof createSlowRecorder>;

/** Creates a buffer of slow requests that are not written yet. It is bounded; further ones are not kept. */
export function createSlowRecorder(deps: {
  fromMs: number;
  describe: DescribeRequest;
  insert: (requests: readonly SlowRequest[]) => Promise<void>;
}) {
  const { fromMs, describe, insert } = deps;
  let waiting: SlowRequest[] = [];
  return {
    /** Milliseconds from which a request is recorded. */
    fromMs,
    record(answered: Answered): void {
      if (waiting.length < WAITING_SLOW_MAX) waiting.push(describe(answered));
    },
    /** Writes the waiting requests. */
    async write(): Promise<void> {
      if (waiting.length === 0) return;
      const taken = waiting;
      waiting = [];
      await insert(taken);
    },
  };
}

export type DescribeRequest = (answered: Answered) => SlowRequest;

/** Creates the function that says what is kept of a request that has been answered now. */
export const describing =
  (targets: (route: string | null) => TargetOf | null, clock: Clock): DescribeRequest =>
  (answered) =>
    requestOf(answered, targets, clock.now());

function requestOf(answered: Answered, targets: (route: string | null) => TargetOf | null, now: number): SlowRequest {
  const { request, requestId, route, status, principal, durationMs, trace } = answered;
  const target = targets(route)?.(answered) ?? "";
  const ms = Math.round(durationMs * 1000) / 1000;
  return {
    at: new Date(now).toISOString(),
    requestId,
    method: request.method,
    path: pathOf(answered),
    target: target === "" ? null : target,
    status,
    principal: { kind: principal.kind, name: nameOf(principal) },
    ms,
    phases: trace?.times(performance.now()) ?? { rules: 0, database: 0, hooks: 0, answer: ms },
    rows: trace?.rows ?? 0,
  };
}

/**
 * Returns the path of a request, without the query, which may have signatures, tokens and filters. For custom routes it is the
 * pattern, as their parameters may be secrets. [AN112]
 */
function pathOf({ request, route }: Answered): string {
  const isOwn = route?.startsWith("/api/functions") === true;
  return (isOwn ? route : new URL(request.url).pathname).slice(0, SLOW_PATH_LENGTH_MAX);
}

function nameOf(principal: Principal): string | null {
  if (principal.kind === "user") return principal.auth.id;
  return principal.kind === "serviceKey" ? principal.name : null;
}

const INSERT = "INSERT INTO slow_requests (at, request) VALUES (?, ?)";
const PAGE = "SELECT id, request FROM slow_requests WHERE id < ?1 AND at >= ?2 AND at < ?4 ORDER BY id DESC LIMIT ?3";
const REMOVE = `DELETE FROM slow_requests WHERE id IN (SELECT id FROM slow_requests
  WHERE at < ?1 OR id <= (SELECT max(id) FROM slow_requests) - ?2 ORDER BY id LIMIT ?3)`;

/** Store of slow requests. */
export type SlowRequests = ReturnType<typeof createSlowRequests>;

export function createSlowRequests(file: DatabaseFile) {
  return {
    async insert(requests: readonly SlowRequest[]): Promise<void> {
      await file.write((tx) => {
        const insert = tx.query(INSERT);
        for (const request of requests) insert.run(Date.parse(request.at), JSON.stringify(request));
        return null;
      });
    },
    /**
     * Lists requests, newest first, before the id `before`; null: from the newest. `from`, `to`: the first moment and the one after
     * the last; null: any. `next`: the next page's `before`; null: last page.
     */
    async page(
      { limit, before, from, to, now }: { limit: number; before: number | null; now: number } & TimeSpan,
      caller: ReadCaller,
    ): Promise<{ requests: SlowRequest[]; next: number | null }> {
      const first = Math.max(from ?? 0, now - SLOW_RETENTION_MS);
      const params = [before ?? Number.MAX_SAFE_INTEGER, first, limit + 1, to ?? Number.MAX_SAFE_INTEGER];
      // The cast follows the columns of the statement.
      const rows = (await file.read(PAGE, params, { caller })) as [id: number, request: string][];
      const hasMore = rows.length > limit;
      if (hasMore) rows.pop();
      // Written by `insert`.
      const requests = rows.map(([, request]) => JSON.parse(request) as SlowRequest);
      return { requests, next: hasMore ? (rows.at(-1)?.[0] ?? null) : null };
    },
    /** Removes requests beyond retention or SLOW_REQUESTS_MAX. Resolves to whether there are more. */
    async sweep(now: number): Promise<boolean> {
      const removed = await file.write((tx) => {
        const { changes } = tx.query(REMOVE).run(now - SLOW_RETENTION_MS, SLOW_REQUESTS_MAX, SWEEP_STEP_ROWS);
        return changes;
      });
      return removed === SWEEP_STEP_ROWS;
    },
  };
}
