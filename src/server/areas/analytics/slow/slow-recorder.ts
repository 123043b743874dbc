import type { Clock } from "../../../../kernel/clock.ts";
import type { PhaseTimes } from "../../../../kernel/observing/request-trace.ts";
import type { Principal } from "../../../access/principal.ts";
import type { Answered } from "../../../http/exchange/request-context.ts";
import { SLOW_PATH_LENGTH_MAX, WAITING_SLOW_MAX } from "../limits.ts";
import type { TargetOf } from "../recording/targets.ts";

/** A request that took long, as it is stored and answered. */
export interface SlowRequest {
  /** ISO 8601: when it was answered. */
  at: string;
  requestId: string;
  method: string;
  path: string;
  target: string | null;
  status: number;
  principal: { kind: Principal["kind"]; name: string | null };
  ms: number;
  phases: PhaseTimes;
  rows: number;
}

export interface SlowRecorder {
  /** Requests that take at least so many milliseconds are recorded. */
  readonly fromMs: number;
  record(answered: Answered): void;
  /** Writes what waits. */
  write(): Promise<void>;
}

/** Keeps slow requests until they are written. Their number in memory is bounded; what comes above it is not kept. */
export function createSlowRecorder(deps: {
  fromMs: number;
  targets: (route: string | null) => TargetOf | null;
  insert: (requests: readonly SlowRequest[]) => Promise<void>;
  clock: Clock;
}): SlowRecorder {
  const { fromMs, targets, insert, clock } = deps;
  let waiting: SlowRequest[] = [];
  return {
    fromMs,
    record(answered) {
      if (waiting.length < WAITING_SLOW_MAX) waiting.push(slowRequest(answered, targets, clock.now()));
    },
    async write() {
      if (waiting.length === 0) return;
      const taken = waiting;
      waiting = [];
      await insert(taken);
    },
  };
}

function slowRequest(answered: Answered, targets: (route: string | null) => TargetOf | null, now: number): SlowRequest {
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
 * Without the query, which may have signatures, tokens and filters. Of own routes the pattern: their parameters may be secrets.
 * [AN112]
 */
function pathOf({ request, route }: Answered): string {
  const isOwn = route?.startsWith("/api/functions") === true;
  return (isOwn ? route : new URL(request.url).pathname).slice(0, SLOW_PATH_LENGTH_MAX);
}

function nameOf(principal: Principal): string | null {
  if (principal.kind === "user") return principal.auth.id;
  return principal.kind === "serviceKey" ? principal.name : null;
}
