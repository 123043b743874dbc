import type { Clock } from "../../kernel/clock.ts";
import { CHILD_OUTPUT_MAX_BYTES, CHILD_STOP_TIMEOUT_MS } from "../limits.ts";
import { BackupError } from "../types.ts";
import type { BackupJob, BackupResult } from "./job.ts";

/** The command that runs a job; not for people. */
export const BACKUP_JOB_COMMAND = "backup-job";

/** Runs a job; an abort of `signal` ends it. Errors: BackupError with what the job said of its failure. */
export type RunBackupJob = (job: BackupJob, signal: AbortSignal) => Promise<BackupResult>;

/** In a process of its own, so that the server's loop never waits for it: copying a database holds up its thread. */
export function createJobProcess(clock: Clock): RunBackupJob {
  return async (job, signal) => {
    const child = Bun.spawn([...ownCommand(), BACKUP_JOB_COMMAND], {
      // It ends with the server, however that ends.
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
    // The job has written it.
    return JSON.parse(output) as BackupResult;
  };
}

/** From source, the file that starts everything; the executable by itself. */
function ownCommand(): string[] {
  if (Bun.isStandaloneExecutable) return [process.execPath];
  return [process.execPath, Bun.fileURLToPath(new URL("../../main.ts", import.meta.url))];
}

/** Asks first, so that it can remove what it has begun. */
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
