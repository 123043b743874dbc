import { systemClock } from "../../../kernel/clock.ts";
import { CertificateError } from "../../areas/tls/certificate.ts";
import { CERTIFICATE_JOB_COMMAND } from "../../areas/tls/job/command.ts";
import { runCertificateJob } from "../../areas/tls/job/job.ts";
import { declareCommand } from "../command.ts";
import { CommandError } from "../errors.ts";

/** Gets one certificate. The server starts it; the job is on standard input. */
export const certificateJobCommand = declareCommand({
  meta: { name: CERTIFICATE_JOB_COMMAND, description: "Gets one certificate", hidden: true },
  args: {},
  async run() {
    const job = JSON.parse(await Bun.stdin.text());
    try {
      await runCertificateJob(job, systemClock);
    } catch (cause) {
      if (cause instanceof CertificateError) throw new CommandError(cause.message, { cause });
      throw cause;
    }
    return 0;
  },
});
