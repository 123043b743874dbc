import type { Clock } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { createWriteBehind } from "../../../kernel/time/write-behind.ts";
import type { AnswerListener } from "../../http/http.ts";
import {
  DROP_REPORT_INTERVAL_MS,
  WAITING_EVENTS_MAX,
  WAITING_EVENTS_MAX_BYTES,
  WAITING_EVENTS_SOFT_MAX,
  WRITE_DELAY_MS,
  WRITE_RETRY_MS,
  WRITE_STEP_LENGTH,
  WRITE_STEP_ROWS,
} from "./limits.ts";
import type { TrackedEvent } from "./model.ts";
import { createRequestLog } from "./request-log.ts";
import type { SlowRecorder } from "./slow-requests.ts";
import type { AnalyticsStore } from "./store.ts";
import type { TargetOf } from "./targets.ts";

/** Collects events and requests in memory, within bounds, and writes many of them together. */
export interface Recording {
  /** Accepts events. Returns immediately, unless many are waiting: then it resolves when they are written. Errors: 503 above the bounds. */
  accept(events: readonly TrackedEvent[]): MaybePromise<void>;
  readonly onAnswer: AnswerListener;
  /** Requests missing from the log since the start. */
  readonly droppedRequests: number;
  /** Writes what is waiting. Resolves when everything that was waiting at the call has been written, or its write has failed. */
  flush(): Promise<void>;
  /** Writes everything that is waiting. */
  stop(): Promise<void>;
}

export function createRecording(deps: {
  store: AnalyticsStore;
  targets: (route: string | null) => TargetOf | null;
  slow: SlowRecorder;
  clock: Clock;
  logger: Logger;
}): Recording {
  const { store, slow, clock, logger } = deps;
  const events = createWaitingEvents();
  const requestLog = createRequestLog({ clock, targets: deps.targets, onRow: () => writing.wake() });
  let reportedDrops = 0;
  let mayReport = true;
  let cancelReport = (): void => {};
  let isFailing = false;

  /** Logs the first failure only, until a write succeeds again. */
  const noteFailure = (cause: unknown): void => {
    if (!isFailing) logger.error("analytics: write failed", { cause });
    isFailing = true;
  };
  const writeEvents = async (): Promise<void> => {
    const steps = inSteps(events.take(), ({ properties }) => properties.length).map(async (step) => {
      try {
        await store.insertEvents(step);
        isFailing = false;
      } catch (cause) {
        events.putBack(step);
        noteFailure(cause);
      }
    });
    await Promise.all(steps);
  };
  const writeRequests = async (): Promise<void> => {
    const { requests, latencies } = requestLog.take();
    const steps = inSteps(requests, () => 0).map(async (step) => {
      try {
        await store.insertRequests(step);
        isFailing = false;
      } catch (cause) {
        requestLog.drop(step.reduce((sum, row) => sum + row.requests, 0));
        noteFailure(cause);
      }
    });
    const others = [...inSteps(latencies, () => 0).map((step) => store.insertLatencies(step)), slow.write()];
    await Promise.all([...steps, ...others.map((written) => written.catch(noteFailure))]);
    reportDrops();
  };
  /** Reports dropped requests, at most once per DROP_REPORT_INTERVAL_MS, as failures come in series. */
  const reportDrops = (): void => {
    const dropped = requestLog.dropped - reportedDrops;
    if (dropped === 0 || !mayReport) return;
    logger.warn("analytics: requests were dropped from the request log", { dropped });
    reportedDrops = requestLog.dropped;
    mayReport = false;
    cancelReport = clock.after(DROP_REPORT_INTERVAL_MS, () => {
      mayReport = true;
      reportDrops();
    });
  };
  const writing = createWriteBehind({
    clock,
    delayMs: WRITE_DELAY_MS,
    retryMs: WRITE_RETRY_MS,
    async writeAll() {
      await Promise.all([writeEvents(), writeRequests()]);
      return events.count > 0;
    },
  });

  return {
    accept(added) {
      events.add(added);
      if (events.count >= WAITING_EVENTS_SOFT_MAX && !isFailing) return writing.flush();
      writing.wake();
      return undefined;
    },
    onAnswer(answered) {
      requestLog.record(answered);
      if (answered.durationMs >= slow.fromMs) slow.record(answered);
    },
    get droppedRequests() {
      return requestLog.dropped;
    },
    flush: writing.flush,
    async stop() {
      await writing.stop();
      cancelReport();
      if (events.count > 0)
        logger.error("analytics: events were lost, because they could not be written", { events: events.count });
    },
  };
}

/** Splits rows into steps, each written in its own transaction, so that other work runs in between. */
function inSteps<T>(rows: readonly T[], lengthOf: (row: T) => number): T[][] {
  const steps: T[][] = [];
  let step: T[] = [];
  let length = 0;
  for (const row of rows) {
    if (step.length === WRITE_STEP_ROWS || length >= WRITE_STEP_LENGTH || steps.length === 0) {
      step = [];
      length = 0;
      steps.push(step);
    }
    step.push(row);
    length += lengthOf(row);
  }
  return steps;
}

const RETRY_AFTER = { "retry-after": "1" };

/** Accepted events that are not on disk yet; bounded in number and bytes. */
function createWaitingEvents() {
  let waiting: TrackedEvent[] = [];
  let bytes = 0;
  const put = (events: readonly TrackedEvent[]): void => {
    for (const event of events) {
      waiting.push(event);
      bytes += sizeOf(event);
    }
  };
  return {
    /** Adds all or none. Errors: 503 above the bounds. */
    add(events: readonly TrackedEvent[]): void {
      const addedBytes = events.reduce((sum, event) => sum + sizeOf(event), 0);
      const isFull = waiting.length + events.length > WAITING_EVENTS_MAX;
      if (isFull || bytes + addedBytes > WAITING_EVENTS_MAX_BYTES) {
        throw new AppError(503, "Too many events are waiting to be written", { headers: RETRY_AFTER });
      }
      put(events);
    },
    /** Removes and returns all. */
    take(): TrackedEvent[] {
      const taken = waiting;
      waiting = [];
      bytes = 0;
      return taken;
    },
    /** Adds events again, above the bounds if necessary, as they have been accepted before. */
    putBack: put,
    get count(): number {
      return waiting.length;
    },
  };
}

/** Estimates the bytes of an event in memory: strings take at most two per character; the rest is small in comparison. */
const sizeOf = ({ name, userId, properties }: TrackedEvent): number =>
  2 * (name.length + (userId?.length ?? 0) + properties.length) + 64;
