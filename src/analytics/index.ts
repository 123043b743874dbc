import { join } from "node:path";
import { analyticsLayout } from "../../schema/migrations/index.ts";
import type { RateLimit } from "../config/types.ts";
import { layOut, type StorageEngine } from "../db/index.ts";
import type { Endpoint } from "../http/endpoint.ts";
import type { AnswerListener } from "../http/http.ts";
import { createRateLimiter } from "../http/rate-limit.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../kernel/logger.ts";
import { analyticsEndpoints } from "./endpoints.ts";
import { CACHE_KIB } from "./limits.ts";
import { createEventQueries } from "./queries/event-queries.ts";
import { readRequestReport } from "./queries/request-queries.ts";
import { createRecording } from "./recording/recording.ts";
import { startRetention } from "./retention/retention.ts";
import { eventSummaries, requestSummaries } from "./retention/summaries.ts";
import { createAnalyticsService } from "./service.ts";
import { createAnalyticsStore } from "./store.ts";

export interface AnalyticsArea {
  readonly endpoints: readonly Endpoint[];
  /** The request log; undefined if the config disables it. */
  readonly onAnswer: AnswerListener | undefined;
  /** Requests missing from the log since the start. */
  readonly droppedRequests: number;
  /** Writes everything that is waiting; the engine closes the file. */
  stop(): Promise<void>;
}

/** Events and the request log, in `<data>/analytics.db`. The rules are in SPEC.md. */
export function createAnalyticsArea(deps: {
  /** Whether requests are recorded. */
  requestLog: boolean;
  trackLimit: RateLimit;
  engine: StorageEngine;
  dataDirectory: string;
  clock: Clock;
  logger: Logger;
}): AnalyticsArea {
  const { engine, clock, logger } = deps;
  const path = join(deps.dataDirectory, "analytics.db");
  const file = engine.open(path, { migrate: layOut(analyticsLayout), cacheKiB: CACHE_KIB });
  const recording = createRecording({ store: createAnalyticsStore(file), clock, logger });
  const service = createAnalyticsService({
    accept: recording.accept,
    flush: recording.flush,
    clock,
    eventQueries: createEventQueries(file),
    readReport: (query, caller) => readRequestReport(file, query, caller),
  });
  const summaries = [eventSummaries(file), requestSummaries(file)];
  const stopRetention = startRetention({ summaries, clock, logger });
  const trackLimit = createRateLimiter(deps.trackLimit, clock);

  return {
    endpoints: analyticsEndpoints(service, trackLimit),
    onAnswer: deps.requestLog ? recording.onAnswer : undefined,
    get droppedRequests() {
      return recording.droppedRequests;
    },
    async stop() {
      await Promise.all([stopRetention(), recording.stop()]);
    },
  };
}
