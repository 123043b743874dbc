import { closeSync, openSync, readSync } from "node:fs";
import type { CertificateFiles } from "../../config/types.ts";
import { CertificateError, type CertificatePair } from "./certificate.ts";
import { PEM_MAX_BYTES } from "./limits.ts";

/** The source of the server's certificate. */
export type CertificateSource = ReturnType<typeof filesSource>;

/** Returns a source of files that another program renews. */
export function filesSource({ cert, key }: Pick<CertificateFiles, "cert" | "key">) {
  return {
    /** The files to watch. */
    paths: [cert, key],
    /** Reads the current certificate; null if there is none yet. Errors: CertificateError, or the system's. */
    read: (): CertificatePair | null => ({ cert: readPem(cert), key: readPem(key) }),
  };
}

function readPem(path: string): string {
  const descriptor = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(PEM_MAX_BYTES);
    const length = readSync(descriptor, bytes);
    if (length === PEM_MAX_BYTES) throw new CertificateError(`${path} is larger than ${PEM_MAX_BYTES} bytes`);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(descriptor);
  }
}
