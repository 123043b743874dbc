import { existsSync } from "node:fs";
import { join } from "node:path";
import { jobsLayout } from "../../schema/migrations/index.ts";
import { layOut, type StorageEngine } from "../db/index.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { CACHE_KIB } from "./limits.ts";
import { Dispatcher } from "./queue/dispatcher.ts";
import { createEnqueuing } from "./queue/enqueuing.ts";
import { dataText, dueTime, requireKey } from "./queue/entry.ts";
import { createPassing } from "./queue/passing.ts";
import { createJobSealing } from "./queue/sealing.ts";
import { JobStore } from "./queue/store.ts";
import { startSweep } from "./queue/sweep.ts";
import type { PassedJob, Queue } from "./types.ts";

export type { JobDefinition, JobRun, Queue } from "./types.ts";
export { FinalFailure } from "./types.ts";

export interface JobsArea {
  readonly queue: Queue;
  /**
   * Adds jobs that an outbox has kept: all or none, in their order. Those whose id is known are not added again. Resolves when
   * they are on disk. Errors: 507 no space left.
   */
  pass(jobs: readonly PassedJob[]): Promise<void>;
  /** Call when every area is open. Opens jobs.db if it exists, and starts what is due. */
  start(): Promise<void>;
  /** Starts no more jobs, and gives running ones time to end. Jobs can still be enqueued, and run after the next start. */
  stop(): Promise<void>;
}

/** Durable jobs in `<data>/jobs.db`, which is opened when it is first needed. Rules: SPEC.md. */
export function createJobsArea(deps: {
  engine: StorageEngine;
  dataDirectory: string;
  /** The server's secret; the key for secrets of jobs is derived from it. */
  secrets: { jwtSecret: string };
  /** true: jobs are accepted, and none runs. */
  isDrill: boolean;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): JobsArea {
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
  const dispatcher = new Dispatcher({ store: open, sealing, clock, ids, logger });
  const enqueue = createEnqueuing(open, dispatcher.onDue);
  const run = (): void => {
    if (isDrill || starting !== null) return;
    stopSweep = startSweep({ store: open(), clock, logger });
    starting = dispatcher.start().catch((cause: unknown) => {
      logger.error("jobs: jobs.db cannot be written; no jobs run", { cause });
    });
  };

  const queue: Queue = {
    define: (name, definition) => dispatcher.define(name, definition),
    async enqueue(name, data, options = {}) {
      const createdAt = clock.now();
      const id = requireKey("id", options.id) ?? ids.uuid();
      const secret = options.secret === undefined ? null : sealing.seal(id, options.secret);
      const key = requireKey("key", options.key);
      const group = requireKey("group", options.group);
      const dueAt = dueTime(options, createdAt);
      return enqueue({ id, name, data: dataText(data), secret, key, group, createdAt, dueAt });
    },
  };

  return {
    queue,
    pass: createPassing({ store: open, onDue: dispatcher.onDue, clock }),
    async start() {
      isStarted = true;
      if (existsSync(path)) open();
      if (store !== null) run();
    },
    async stop() {
      isStarted = false;
      await starting;
      await Promise.all([dispatcher.stop(), stopSweep()]);
    },
  };
}
