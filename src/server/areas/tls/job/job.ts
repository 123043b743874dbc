import type { Clock } from "../../../../kernel/clock.ts";
import type { AcmeConfig } from "../../../config/types.ts";
import { AcmeFiles } from "../acme/files.ts";
import { issueCertificate } from "../acme/issue.ts";
import type { CertificatePair } from "../certificate.ts";
import { SELF_SIGNED_LIFE_MS } from "../limits.ts";

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

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const SERIAL_BYTES = 8;

/** Creates a certificate that no client trusts, so that the server can listen before it has another one. */
export async function createSelfSigned(names: readonly string[], clock: Clock): Promise<CertificatePair> {
  // The library requires it when it is evaluated.
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const now = clock.now();
  const exported = new Uint8Array(await crypto.subtle.exportKey("pkcs8", keys.privateKey));
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // Random like the key, so that no two certificates are equal.
    serialNumber: new Bun.CryptoHasher("sha256")
      .update(exported)
      .digest("hex")
      .slice(0, SERIAL_BYTES * 2),
    name: [{ CN: [names[0] ?? "localhost"] }],
    notBefore: new Date(now),
    notAfter: new Date(now + SELF_SIGNED_LIFE_MS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: "dns" as const, value }))),
      new x509.BasicConstraintsExtension(false, undefined, true),
    ],
  });
  return { cert: `${certificate.toString("pem")}\n`, key: `${x509.PemConverter.encode(exported, "PRIVATE KEY")}\n` };
}
