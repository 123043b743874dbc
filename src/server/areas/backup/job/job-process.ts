import type { Clock } from "../../../../kernel/clock.ts";
import { ownCommand } from "../../../../kernel/process/own-command.ts";
import { CHILD_OUTPUT_MAX_BYTES, CHILD_STOP_TIMEOUT_MS } from "../limits.ts";
import { BackupError } from "../types.ts";
import type { BackupJob, BackupResult, VerifyJob } from "./job.ts";

/** Name of the internal command that runs jobs of both kinds. */
export const BACKUP_JOB_COMMAND = "backup-job";

/** Runs a job; an abort of `signal` cancels it. Errors: BackupError with the message of the job. */
type RunJob<Job, Result> = (job: Job, signal: AbortSignal) => Promise<Result>;
export type RunBackupJob = RunJob<BackupJob, BackupResult>;

/** Runs jobs in processes of their own, because copying a database blocks its thread. */
export function createJobProcess<Job extends BackupJob | VerifyJob, Result>(clock: Clock): RunJob<Job, Result> {
  return async (job, signal) => {
    const child = Bun.spawn([...ownCommand(), BACKUP_JOB_COMMAND], {
      // The process ends with the server, even if the server is killed.
      env: { ...process.env, BUN_FEATURE_FLAG_NO_ORPHANS: "1" },
      stdin: Buffer.from(JSON.stringify(job)),
      stdout: "pipe",
      stderr: "pipe",
    });
    const stop = stopper(child, clock);
    signal.addEventListener("abort", stop.now, { once: true });
    if (signal.aborted) stop.now();
    const [output, errors, code] = await Promise.all([endOf(child.stdout), endOf(child.stderr), child.exited]);
    signal.removeEventListener("abort", stop.now);
    stop.cancel();
    if (code !== 0) throw new BackupError(errors.trim().replace(/^platform: /, "") || `it ended with ${code}`);
    // Written by the job command.
    return JSON.parse(output) as Result;
  };
}

/** Sends SIGTERM first, so that the process can remove its files. */
function stopper(child: Bun.Subprocess, clock: Clock): { now(): void; cancel(): void } {
  let cancel = () => {};
  return {
    now() {
      child.kill("SIGTERM");
      cancel = clock.after(CHILD_STOP_TIMEOUT_MS, () => child.kill("SIGKILL"));
    },
    cancel: () => cancel(),
  };
}

async function endOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text = (text + decoder.decode(chunk, { stream: true })).slice(-CHILD_OUTPUT_MAX_BYTES);
  }
  return text;
}
