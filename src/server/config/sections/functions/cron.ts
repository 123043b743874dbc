import { type Static, Type } from "typebox";
import type { Logger } from "../../../../kernel/logger.ts";
import type { AppAccess } from "../../app/index.ts";
import { JOB_RETRIES_MAX, JOB_TIMEOUT_MAX_SECONDS } from "../../limits.ts";
import { describe } from "../../shape/report.ts";
import { func, named, seconds, textWith, whole } from "../../shape/schema.ts";

/** One run of a schedule. */
export interface CronRun {
  readonly id: string;
  readonly app: AppAccess;
  /** The scheduled time of the run, in ISO 8601; the run is later where it catches up or is a retry. */
  readonly scheduledAt: string;
  /** The attempt, from 1. */
  readonly attempt: number;
  /** Aborted at the timeout, when the run is cancelled, and when the server stops. */
  readonly signal: AbortSignal;
  /** A logger that adds the job's name and id. */
  readonly log: Logger;
}

/** A cron expression of five fields that occurs at some time. */
export const cronExpression = () =>
  textWith((value) => {
    const problem = `must be a cron expression of five fields that occurs at some time, such as "0 3 * * *", got ${describe(value)}`;
    try {
      return Bun.cron.parse(value) === null ? problem : null;
    } catch {
      return problem;
    }
  });

const timeZone = textWith((value) => {
  try {
    new Intl.DateTimeFormat("en", { timeZone: value });
    return null;
  } catch {
    return `must be a time zone such as Europe/Berlin, got ${describe(value)}`;
  }
});

const CronShape = Type.Object({
  /** The times: a cron expression of five fields, or a nickname such as `@daily`. */
  schedule: cronExpression(),
  /** The time zone; UTC by default. A time that a clock change skips runs right after it; one that it repeats runs once. */
  timezone: Type.Optional(timeZone),
  /** true: after a start, one run catches up for all missed ones. false by default. */
  catchUp: Type.Optional(Type.Boolean()),
  /** Retries; 0 by default. */
  retries: Type.Optional(whole({ min: 0, max: JOB_RETRIES_MAX })),
  /** The timeout of one attempt in seconds; 3600 by default. */
  timeout: Type.Optional(seconds({ max: JOB_TIMEOUT_MAX_SECONDS })),
  run: func<(run: CronRun) => unknown>(),
});
export interface CronJobConfig extends Static<typeof CronShape> {}

export const Cron = named(Type.Unsafe<CronJobConfig>(CronShape));
export interface CronConfig extends Static<typeof Cron> {}
