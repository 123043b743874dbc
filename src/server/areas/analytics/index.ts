import { join } from "node:path";
import { analyticsLayout } from "../../../../schema/migrations/index.ts";
import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { RateLimit } from "../../config/types.ts";
import { layOut, type StorageEngine } from "../../db/index.ts";
import type { AnswerListener } from "../../http/http.ts";
import { createRateLimiter } from "../../http/rate-limit.ts";
import { analyticsEndpoints } from "./endpoints.ts";
import { createEventQueries } from "./event-queries.ts";
import { CACHE_KIB, SLOW_MS } from "./limits.ts";
import { createRecording } from "./recording.ts";
import { readRequestReport } from "./request-queries.ts";
import { eventSummaries, latencySummaries, requestSummaries, startRetention } from "./retention.ts";
import { createAnalyticsService } from "./service.ts";
import { createSlowRecorder, createSlowRequests, describing } from "./slow-requests.ts";
import { createAnalyticsStore } from "./store.ts";
import { storyEndpoints } from "./stories/endpoints.ts";
import { Stories } from "./stories/stories.ts";
import { createTargets } from "./targets.ts";

export type AnalyticsArea = ReturnType<typeof createAnalyticsArea>;

/** Creates the analytics area: events and the request log, in `<data>/analytics.db`. Rules: SPEC.md. */
export function createAnalyticsArea(deps: {
  /** Whether requests are recorded. */
  requestLog: boolean;
  /** Milliseconds from which a request is slow. Default: SLOW_MS. */
  slowMs: number | undefined;
  /** Whether the story of every request is kept. */
  isDevelopment: boolean;
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
  const { slowMs: fromMs = SLOW_MS, isDevelopment, dataDirectory } = deps;
  const describe = describing(targets, clock);
  const slow = createSlowRecorder({ fromMs, describe, insert: slowRequests.insert });
  const stories = new Stories({ isAll: isDevelopment, fromMs, dataDirectory, describe });
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

  const onAnswer: AnswerListener = (answered) => {
    recording.onAnswer(answered);
    stories.note(answered);
  };

  return {
    endpoints: [...analyticsEndpoints(service, trackLimit), ...storyEndpoints(stories)],
    /** Records answers in the request log, and keeps stories; undefined if the config disables it. */
    onAnswer: deps.requestLog ? onAnswer : undefined,
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
