import type { Clock } from "../../../../kernel/clock.ts";
import { ownCommand } from "../../../../kernel/process/own-command.ts";
import { CertificateError } from "../certificate.ts";
import { ISSUE_TIMEOUT_MS, JOB_OUTPUT_MAX_CHARS, SELF_SIGNED_TIMEOUT_MS } from "../limits.ts";
import { CERTIFICATE_JOB_COMMAND } from "./command.ts";
import type { CertificateJob } from "./job.ts";

/** Runs a job in a child process. Errors: CertificateError with the message of the job. */
export type RunCertificateJob = (job: CertificateJob, signal: AbortSignal) => Promise<void>;

export function createCertificateProcess(clock: Clock): RunCertificateJob {
  return async (job, signal) => {
    const child = Bun.spawn([...ownCommand(), CERTIFICATE_JOB_COMMAND], {
      // The process ends with the server, even if the server is killed.
      env: { ...process.env, BUN_FEATURE_FLAG_NO_ORPHANS: "1" },
      stdin: Buffer.from(JSON.stringify(job)),
      stdout: "ignore",
      stderr: "pipe",
    });
    let isLate = false;
    const end = (): void => child.kill("SIGKILL");
    const cancel = clock.after(job.kind === "issue" ? ISSUE_TIMEOUT_MS : SELF_SIGNED_TIMEOUT_MS, () => {
      isLate = true;
      end();
    });
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    const [errors, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    cancel();
    signal.removeEventListener("abort", end);
    if (code === 0) return;
    const said = errors
      .slice(-JOB_OUTPUT_MAX_CHARS)
      .trim()
      .replace(/^platform: /, "");
    throw new CertificateError(isLate ? "it took too long" : said || `its process ended with ${code}`);
  };
}
