import { join } from "node:path";
import { analyticsLayout } from "../../../../schema/migrations/index.ts";
import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { RateLimit } from "../../config/types.ts";
import { layOut, type StorageEngine } from "../../db/index.ts";
import { createRateLimiter } from "../../http/rate-limit.ts";
import { analyticsEndpoints } from "./endpoints.ts";
import { createEventQueries } from "./event-queries.ts";
import { CACHE_KIB, SLOW_MS } from "./limits.ts";
import { createRecording } from "./recording.ts";
import { readRequestReport } from "./request-queries.ts";
import { eventSummaries, latencySummaries, requestSummaries, startRetention } from "./retention.ts";
import { createAnalyticsService } from "./service.ts";
import { createSlowRecorder, createSlowRequests } from "./slow-requests.ts";
import { createAnalyticsStore } from "./store.ts";
import { createTargets } from "./targets.ts";

export type AnalyticsArea = ReturnType<typeof createAnalyticsArea>;

/** Creates the analytics area: events and the request log, in `<data>/analytics.db`. Rules: SPEC.md. */
export function createAnalyticsArea(deps: {
  /** Whether requests are recorded. */
  requestLog: boolean;
  /** Milliseconds from which a request is slow. Default: SLOW_MS. */
  slowMs: number | undefined;
  /** Config sections that declare the targets of requests. */
  config: Parameters<typeof createTargets>[0];
  trackLimit: RateLimit;
  engine: StorageEngine;
  dataDirectory: string;
  clock: Clock;
  logger: Logger;
}) {
  const { engine, clock, logger } = deps;
  const path = join(deps.dataDirectory, "analytics.db");
  const file = engine.open(path, { migrate: layOut(analyticsLayout), cacheKiB: CACHE_KIB });
  const targets = createTargets(deps.config);
  const slowRequests = createSlowRequests(file);
  const slow = createSlowRecorder({ fromMs: deps.slowMs ?? SLOW_MS, targets, insert: slowRequests.insert, clock });
  const recording = createRecording({ store: createAnalyticsStore(file), targets, slow, clock, logger });
  const service = createAnalyticsService({
    accept: recording.accept,
    flush: recording.flush,
    clock,
    eventQueries: createEventQueries(file),
    slow: slowRequests,
    readReport: (query, caller) => readRequestReport(file, query, caller),
  });
  const summaries = [eventSummaries(file), requestSummaries(file), latencySummaries(file)];
  const stopRetention = startRetention({ summaries, slowRequests, clock, logger });
  const trackLimit = createRateLimiter(deps.trackLimit, clock);

  return {
    endpoints: analyticsEndpoints(service, trackLimit),
    /** Records answers in the request log; undefined if the config disables it. */
    onAnswer: deps.requestLog ? recording.onAnswer : undefined,
    /** Requests missing from the log since the start. */
    get droppedRequests(): number {
      return recording.droppedRequests;
    },
    /** Writes everything that is waiting; the engine closes the file. */
    async stop(): Promise<void> {
      await Promise.all([stopRetention(), recording.stop()]);
    },
  };
}
