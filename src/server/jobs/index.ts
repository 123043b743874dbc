import type { Millis } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import { Scheduler } from "../../kernel/time/scheduler.ts";
import type { AppAccess } from "../config/app/index.ts";
import type { CronConfig, JobsConfig } from "../config/types.ts";
import type { RecordChange } from "../db/index.ts";
import { jobEndpoints } from "./admin/endpoints.ts";
import { createJobRecords } from "./admin/records.ts";
import { createJobsService } from "./admin/service.ts";
import { createSchedules, defineCron } from "./cron/schedules.ts";
import { createQueueCore, type QueueCoreDeps } from "./queue/core.ts";
import { createJobForm, createJobsAccessor, defineJobs } from "./queue/declared-jobs.ts";
import { createPreparing } from "./queue/outbox.ts";
import type { JobStore } from "./queue/store.ts";
import type { NameCounts } from "./types.ts";

export { cronTimes } from "./cron/next-time.ts";
export { SCHEDULE_KEY, type Schedules } from "./cron/schedules.ts";
export type { JobDefinition, JobRun, PassedJob, Queue } from "./types.ts";
export { FinalFailure } from "./types.ts";

export type JobsArea = ReturnType<typeof createJobsArea>;

/** Creates the durable queue in `<data>/jobs.db`, which is opened when it is first needed. Rules: SPEC.md. */
export function createJobsArea(
  deps: QueueCoreDeps & {
    jobs: JobsConfig;
    cron: CronConfig;
    app: () => AppAccess;
    /** Records in the audit log what the current caller has changed. */
    audit: RecordChange;
  },
) {
  const { clock, app } = deps;
  const core = createQueueCore(deps);
  const schedules = createSchedules({ ...deps, core });
  defineJobs(core.queue, deps.jobs, app);
  defineCron(schedules, deps.cron, app);
  const form = createJobForm(deps.jobs);
  const records = createJobRecords({ core, clock, isDrill: deps.isDrill });

  const accessor = createJobsAccessor(core.queue, form);
  const service = createJobsService({
    core,
    records,
    schedules,
    isDeclared: (name) => Object.hasOwn(deps.jobs, name),
    enqueue: (name, data) => accessor.enqueue(name, data),
    turns: new Scheduler(),
    audit: deps.audit,
  });

  return {
    endpoints: jobEndpoints(service),
    queue: core.queue,
    /**
     * Adds jobs from an outbox: all or none, in their order. Jobs whose id is known are not added again. Resolves when they are on
     * disk. Errors: 507 no space left.
     */
    pass: core.pass,
    schedules,
    /** `app.jobs`: the jobs that the config declares. */
    accessor,
    /** Prepares a job of the config for an outbox. */
    prepare: createPreparing({ ...deps, form }),
    get load(): JobsLoad {
      return loadOf(core.opened(), clock.now());
    },
    /** Opens jobs.db if it exists, and starts due jobs. Call when every area is open. */
    async start(): Promise<void> {
      core.start();
      await schedules.start();
    },
    /** Starts no more jobs, and gives running ones time to end. Jobs can still be enqueued, and run after the next start. */
    async stop(): Promise<void> {
      schedules.stop();
      await core.stop();
    },
  };
}

/** Figures for the metrics, by job name. */
export type JobsLoad = readonly {
  name: string;
  waiting: number;
  running: number;
  /** Jobs that have failed, including those before this start. */
  failedTotal: number;
  /** Time for which the earliest due job has been due; 0 if none is. */
  oldestWaitingSeconds: number;
}[];

/** Reads the counts, or none when jobs.db has failed: the other metrics must not be missing then. */
function countsOf(store: JobStore): NameCounts[] {
  try {
    store.file.assertReadable();
  } catch {
    return [];
  }
  return store.counts();
}

function loadOf(store: JobStore | null, now: Millis): JobsLoad {
  if (store === null) return [];
  return countsOf(store).map(({ name, waiting, running, failedTotal }) => {
    const dueAt = waiting === 0 ? null : store.nextDue(store.file, name);
    const oldestWaitingSeconds = dueAt === null ? 0 : Math.max(0, now - dueAt) / SECOND_MS;
    return { name, waiting, running, failedTotal, oldestWaitingSeconds };
  });
}
