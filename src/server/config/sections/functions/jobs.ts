import { type Static, Type } from "typebox";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { AppAccess } from "../../app/index.ts";
import { JOB_CONCURRENCY_MAX, JOB_RETRIES_MAX, JOB_TIMEOUT_MAX_SECONDS } from "../../limits.ts";
import { func, jsonSchema, named, seconds, whole } from "../../shape/schema.ts";

/** One attempt of a job. */
export interface Job<Data = JsonValue> {
  readonly id: string;
  readonly data: Data;
  readonly app: AppAccess;
  /** The attempt, from 1. An attempt during which the server was killed counts. */
  readonly attempt: number;
  /** Aborted at the timeout, when the job is cancelled, and when the server stops. */
  readonly signal: AbortSignal;
  /** A logger that adds the job's name and id. */
  readonly log: Logger;
}

const JobShape = Type.Object({
  /** The schema of the data, made with `t` from "elysia" or with TypeBox. Any JSON by default. */
  data: Type.Optional(jsonSchema()),
  /** Runs the job, which is done when this returns or resolves; a throw is retried. */
  run: func<(job: Job) => unknown>(),
  /** Retries; 5 by default. */
  retries: Type.Optional(whole({ min: 0, max: JOB_RETRIES_MAX })),
  /** The timeout of one attempt in seconds; 60 by default. */
  timeout: Type.Optional(seconds({ max: JOB_TIMEOUT_MAX_SECONDS })),
  /** Jobs of this name that run concurrently; 4 by default. */
  concurrency: Type.Optional(whole({ min: 1, max: JOB_CONCURRENCY_MAX })),
});
export interface JobConfig extends Static<typeof JobShape> {}

export const Jobs = named(Type.Unsafe<JobConfig>(JobShape));
export interface JobsConfig extends Static<typeof Jobs> {}
