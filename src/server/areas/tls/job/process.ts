import type { Clock } from "../../../../kernel/clock.ts";
import { runOwnJob } from "../../../db/processes/own-job.ts";
import { CertificateError } from "../certificate.ts";
import { ISSUE_TIMEOUT_MS, JOB_OUTPUT_MAX_CHARS, SELF_SIGNED_TIMEOUT_MS } from "../limits.ts";
import { CERTIFICATE_JOB_COMMAND } from "./command.ts";
import type { CertificateJob } from "./job.ts";

/** Runs a job in a child process. Errors: CertificateError with the message of the job. */
export type RunCertificateJob = (job: CertificateJob, signal: AbortSignal) => Promise<void>;

export function createCertificateProcess(clock: Clock): RunCertificateJob {
  return async (job, signal) => {
    const timeoutMs = job.kind === "issue" ? ISSUE_TIMEOUT_MS : SELF_SIGNED_TIMEOUT_MS;
    const bounds = { outputMax: JOB_OUTPUT_MAX_CHARS, timeoutMs };
    const { problem } = await runOwnJob({ command: CERTIFICATE_JOB_COMMAND, job, signal, clock, ...bounds });
    if (problem !== null) throw new CertificateError(problem);
  };
}
