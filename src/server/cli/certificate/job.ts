import { Command } from "@commander-js/extra-typings";
import { systemClock } from "../../../kernel/clock.ts";
import { CertificateError } from "../../areas/tls/certificate.ts";
import { CERTIFICATE_JOB_COMMAND } from "../../areas/tls/job/command.ts";
import { runCertificateJob } from "../../areas/tls/job/job.ts";
import { CommandError } from "../errors.ts";

/** Gets one certificate. The server starts it; the job is on standard input. */
export const certificateJobCommand = new Command(CERTIFICATE_JOB_COMMAND)
  .description("Gets one certificate")
  .action(async () => {
    const job = JSON.parse(await Bun.stdin.text());
    try {
      await runCertificateJob(job, systemClock);
    } catch (cause) {
      if (cause instanceof CertificateError) throw new CommandError(cause.message, { cause });
      throw cause;
    }
  });
