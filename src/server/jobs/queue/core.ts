import { existsSync } from "node:fs";
import { join } from "node:path";
import { jobsLayout } from "../../../../schema/migrations/index.ts";
import type { AnswerGate } from "../../../kernel/answer-gate.ts";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { Foreground } from "../../../kernel/observing/foreground.ts";
import { currentSteps } from "../../../kernel/observing/request-trace.ts";
import { startSweeping } from "../../../kernel/time/sweeping.ts";
import { layOut, type StorageEngine } from "../../db/index.ts";
import {
  CACHE_KIB,
  DONE_RETENTION_MS,
  FAILED_RETENTION_MS,
  SWEEP_FIRST_MS,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_BYTES,
  SWEEP_STEP_JOBS,
} from "../limits.ts";
import { DONE, type EnqueueOptions, FAILED, type Queue } from "../types.ts";
import { Dispatcher } from "./dispatcher.ts";
import { createEnqueuing } from "./enqueuing.ts";
import { createJobSealing, dataText, dueTime, type NewJob, requireKey } from "./entry.ts";
import { createPassing } from "./outbox.ts";
import { JobStore } from "./store.ts";

export interface QueueCoreDeps {
  engine: StorageEngine;
  dataDirectory: string;
  /** The server's secret; the key for secrets of jobs is derived from it. */
  secrets: { jwtSecret: string };
  /** Whether jobs are accepted and none runs. */
  isDrill: boolean;
  foreground: Foreground;
  /** Lets jobs begin when the log of a cluster has them; null: they always may. */
  gate?: AnswerGate | null;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** The queue with its file, for the other parts of this folder. */
export type QueueCore = ReturnType<typeof createQueueCore>;

export function createQueueCore(deps: QueueCoreDeps) {
  const { engine, clock, ids, logger, isDrill } = deps;
  const path = join(deps.dataDirectory, "jobs.db");
  const sealing = createJobSealing(deps.secrets.jwtSecret, ids);
  let store: JobStore | null = null;
  let starting: Promise<void> | null = null;
  let isStarted = false;
  let stopSweep = async () => {};

  const open = (): JobStore => {
    if (store !== null) return store;
    store = new JobStore(engine.open(path, { migrate: layOut(jobsLayout), cacheKiB: CACHE_KIB }));
    if (isStarted) run();
    return store;
  };
  const existing = (): JobStore | null => store ?? (existsSync(path) ? open() : null);
  const dispatcher = new Dispatcher({ ...deps, store: open, sealing });
  const enqueue = createEnqueuing(open, dispatcher.onDue);
  const entryOf = (name: string, data: JsonValue, options: EnqueueOptions = {}): NewJob => {
    const createdAt = clock.now();
    const id = requireKey("id", options.id) ?? ids.uuid();
    const secret = options.secret === undefined ? null : sealing.seal(id, options.secret);
    const key = requireKey("key", options.key);
    const group = requireKey("group", options.group);
    return { id, name, data: dataText(data), secret, key, group, createdAt, dueAt: dueTime(options, createdAt) };
  };
  const run = (): void => {
    if (isDrill || starting !== null) return;
    stopSweep = startSweep({ store: open(), clock, logger });
    starting = dispatcher.start();
  };

  const queue: Queue = {
    define: (name, definition) => dispatcher.define(name, definition),
    async enqueue(name, data, options) {
      const id = await enqueue(entryOf(name, data, options));
      currentSteps()?.job(name, id);
      return id;
    },
    unfinished: (name) => existing()?.unfinished(name) ?? 0,
    prepare(name, data, options) {
      const { createdAt: _, ...job } = entryOf(name, data, options);
      return job;
    },
  };
  return {
    queue,
    /** See `JobsArea.pass`. */
    pass: createPassing({ store: open, onDue: dispatcher.onDue, clock }),
    dispatcher,
    /** Opens jobs.db, or creates it. */
    open,
    /** Returns the open jobs.db; null: there is none, or nothing has needed it yet. */
    opened: (): JobStore | null => store,
    /** Returns `opened()`, and opens a file that exists. */
    existing,
    start(): void {
      isStarted = true;
      if (existing() !== null) run();
    },
    async stop(): Promise<void> {
      isStarted = false;
      await starting;
      await Promise.all([dispatcher.stop(), stopSweep()]);
    },
  };
}

/** Removes finished jobs whose retention has ended, in steps of bounded size. */
function startSweep(deps: { store: JobStore; clock: Clock; logger: Logger }): () => Promise<void> {
  const { store, clock, logger } = deps;
  return startSweeping({
    clock,
    firstMs: SWEEP_FIRST_MS,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: SWEEP_PAUSE_MS,
    async sweep() {
      const now = clock.now();
      const step = { limit: SWEEP_STEP_JOBS, bytesMax: SWEEP_STEP_BYTES };
      const isMoreDone = await store.sweep(DONE, { until: now - DONE_RETENTION_MS, ...step });
      const isMoreFailed = await store.sweep(FAILED, { until: now - FAILED_RETENTION_MS, ...step });
      return isMoreDone || isMoreFailed;
    },
    onFailure: (cause) => logger.error("jobs: finished jobs could not be removed", { cause }),
  });
}
