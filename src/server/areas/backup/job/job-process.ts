import type { Clock } from "../../../../kernel/clock.ts";
import { runOwnJob } from "../../../db/processes/own-job.ts";
import { CHILD_OUTPUT_MAX_CHARS, CHILD_STOP_TIMEOUT_MS } from "../limits.ts";
import { BackupError } from "../types.ts";
import type { BackupJob, BackupResult, VerifyJob } from "./job.ts";

/** Name of the internal command that runs jobs of both kinds. */
export const BACKUP_JOB_COMMAND = "backup-job";

/** Runs a job; an abort of `signal` cancels it. Errors: BackupError with the message of the job. */
type RunJob<Job, Result> = (job: Job, signal: AbortSignal) => Promise<Result>;
export type RunBackupJob = RunJob<BackupJob, BackupResult>;

/** Runs jobs in processes of their own, because copying a database blocks its thread. */
export function createJobProcess<Job extends BackupJob | VerifyJob, Result>(clock: Clock): RunJob<Job, Result> {
  const bounds = { outputMax: CHILD_OUTPUT_MAX_CHARS, stopMs: CHILD_STOP_TIMEOUT_MS };
  return async (job, signal) => {
    const { output, problem } = await runOwnJob({ command: BACKUP_JOB_COMMAND, job, signal, clock, ...bounds });
    if (problem !== null) throw new BackupError(problem);
    // Written by the job command.
    return JSON.parse(output) as Result;
  };
}
