import type { Clock } from "../../../../kernel/clock.ts";
import type { AcmeConfig } from "../../../config/types.ts";
import { AcmeFiles } from "../acme/files.ts";
import { issueCertificate } from "../acme/issue.ts";
import { createSelfSigned } from "../acme/self-signed.ts";

/** A job for a child process: the libraries take 40 MB and a third of a second, for one use in two months. */
export interface CertificateJob {
  kind: "issue" | "selfSign";
  dataDirectory: string;
  config: AcmeConfig;
}

/** Runs a job. Errors: CertificateError. */
export async function runCertificateJob({ kind, dataDirectory, config }: CertificateJob, clock: Clock): Promise<void> {
  const files = new AcmeFiles(dataDirectory);
  if (kind === "issue") await issueCertificate(config, { files, clock });
  else files.writeSelfSigned(await createSelfSigned(config.domains, clock));
}
