import type { JsonValue } from "../../kernel/json/json.ts";
import type { CronJobConfig, CronRun } from "../sections/functions/cron.ts";
import type { Job, JobConfig } from "../sections/functions/jobs.ts";
import type { AppOf } from "./access.ts";

/** What a schema made with `t` from "elysia" describes; any JSON for another schema, or none. */
type DataOf<Schema> = Schema extends { static: infer Data } ? Data : JsonValue;

interface TypedJobRun<Data, Namespaces> extends Omit<Job, "data" | "app"> {
  readonly data: Data;
  readonly app: AppOf<Namespaces>;
}

/** A job whose `run` knows its data, and the tables of the config. */
export interface TypedJob<Schema, Namespaces> extends Omit<JobConfig, "data" | "run"> {
  /** As that of `JobConfig`. */
  data?: Schema & object;
  /** As that of `JobConfig`. */
  run: (job: TypedJobRun<NoInfer<DataOf<Schema>>, NoInfer<Namespaces>>) => unknown;
}

interface TypedCronRun<Namespaces> extends Omit<CronRun, "app"> {
  readonly app: AppOf<Namespaces>;
}

/** A schedule whose `run` knows the tables of the config. */
export interface TypedCron<Namespaces> extends Omit<CronJobConfig, "run"> {
  /** As that of `CronJobConfig`. */
  run: (run: TypedCronRun<NoInfer<Namespaces>>) => unknown;
}
