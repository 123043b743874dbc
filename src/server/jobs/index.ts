import { Scheduler } from "../../kernel/time/scheduler.ts";
import type { AppAccess, JobsAccessor } from "../config/app/index.ts";
import type { CronConfig, JobsConfig } from "../config/types.ts";
import type { RecordChange } from "../db/index.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { jobEndpoints } from "./admin/endpoints.ts";
import { createJobRecords } from "./admin/records.ts";
import { createJobsService } from "./admin/service.ts";
import { defineCron } from "./config/declared-cron.ts";
import { createJobForm, createJobsAccessor, defineJobs } from "./config/declared-jobs.ts";
import { createSchedules, type Schedules } from "./cron/schedules.ts";
import { createQueueCore, type QueueCoreDeps } from "./queue/core.ts";
import { type JobsLoad, loadOf } from "./queue/load.ts";
import { createPreparing, type PrepareJob } from "./queue/outbox.ts";
import type { PassedJob, Queue } from "./types.ts";

export { cronTimes } from "./cron/next-time.ts";
export { SCHEDULE_KEY, type Schedules } from "./cron/schedules.ts";
export type { JobsLoad } from "./queue/load.ts";
export type { JobDefinition, JobRun, PassedJob, Queue } from "./types.ts";
export { FinalFailure } from "./types.ts";

export interface JobsArea {
  readonly endpoints: readonly Endpoint[];
  readonly queue: Queue;
  /**
   * Adds jobs from an outbox: all or none, in their order. Jobs whose id is known are not added again. Resolves when they are on
   * disk. Errors: 507 no space left.
   */
  pass(jobs: readonly PassedJob[]): Promise<void>;
  readonly schedules: Schedules;
  /** `app.jobs`: the jobs that the config declares. */
  readonly accessor: JobsAccessor;
  /** Prepares a job of the config for an outbox. */
  readonly prepare: PrepareJob;
  readonly load: JobsLoad;
  /** Opens jobs.db if it exists, and starts due jobs. Call when every area is open. */
  start(): Promise<void>;
  /** Starts no more jobs, and gives running ones time to end. Jobs can still be enqueued, and run after the next start. */
  stop(): Promise<void>;
}

/** Creates the durable queue in `<data>/jobs.db`, which is opened when it is first needed. Rules: SPEC.md. */
export function createJobsArea(
  deps: QueueCoreDeps & {
    jobs: JobsConfig;
    cron: CronConfig;
    app: () => AppAccess;
    /** Records in the audit log what the current caller has changed. */
    audit: RecordChange;
  },
): JobsArea {
  const { clock, app } = deps;
  const core = createQueueCore(deps);
  const schedules = createSchedules({ ...deps, core });
  defineJobs(core.queue, deps.jobs, app);
  defineCron(schedules, deps.cron, app);
  const form = createJobForm(deps.jobs);
  const records = createJobRecords({ core, clock, isDrill: deps.isDrill });

  const service = createJobsService({ core, records, schedules, turns: new Scheduler(), audit: deps.audit });

  return {
    endpoints: jobEndpoints(service),
    queue: core.queue,
    pass: core.pass,
    schedules,
    accessor: createJobsAccessor(core.queue, form),
    prepare: createPreparing({ ...deps, form }),
    get load() {
      return loadOf(core.opened(), clock.now());
    },
    async start() {
      core.start();
      await schedules.start();
    },
    async stop() {
      schedules.stop();
      await core.stop();
    },
  };
}
