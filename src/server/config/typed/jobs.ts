import type { CronJobConfig, CronRun } from "../sections/functions/cron.ts";
import type { Job, JobConfig } from "../sections/functions/jobs.ts";
import type { AppOf, DataOf } from "./access.ts";

interface TypedJobRun<Data, Namespaces, Jobs> extends Omit<Job, "data" | "app"> {
  readonly data: Data;
  readonly app: AppOf<Namespaces, Jobs>;
}

/** A job whose `run` knows its data, and the tables and jobs of the config. */
export interface TypedJob<Schema, Namespaces, Jobs> extends Omit<JobConfig, "data" | "run"> {
  /** The schema of the data: see `JobConfig`. */
  data?: Schema & object;
  /** Runs the job: see `JobConfig`. */
  run: (job: TypedJobRun<NoInfer<DataOf<Schema>>, NoInfer<Namespaces>, NoInfer<Jobs>>) => unknown;
}

interface TypedCronRun<Namespaces, Jobs> extends Omit<CronRun, "app"> {
  readonly app: AppOf<Namespaces, Jobs>;
}

/** A schedule whose `run` knows the tables and jobs of the config. */
export interface TypedCron<Namespaces, Jobs> extends Omit<CronJobConfig, "run"> {
  /** Runs the schedule: see `CronJobConfig`. */
  run: (run: TypedCronRun<NoInfer<Namespaces>, NoInfer<Jobs>>) => unknown;
}
