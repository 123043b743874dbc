import "reflect-metadata";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as x509 from "@peculiar/x509";
import { temporaryDirectory } from "../platform.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 24 * 60 * 60 * 1_000;

export interface Pair {
  cert: string;
  key: string;
}

/** Certificate authority of a test. It signs for `localhost` and 127.0.0.1 by default. */
export interface Authority {
  readonly cert: string;
  /** Path of its certificate, for NODE_EXTRA_CA_CERTS. */
  readonly file: string;
  sign(options?: { names?: readonly string[]; days?: number; startedDaysAgo?: number }): Promise<Pair>;
}

let serial = Date.now();

const pem = async (key: CryptoKey): Promise<string> =>
  `${x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY")}\n`;

export async function createAuthority(directory = temporaryDirectory()): Promise<Authority> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const issuer = "CN=Test authority";
  const own = await x509.X509CertificateGenerator.createSelfSigned({
    name: issuer,
    notBefore: new Date(Date.now() - 1_000 * DAY_MS),
    notAfter: new Date(Date.now() + 1_000 * DAY_MS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  const cert = `${own.toString("pem")}\n`;
  const file = join(directory, "authority.pem");
  writeFileSync(file, cert);
  return {
    cert,
    file,
    async sign({ names = ["localhost"], days = 90, startedDaysAgo = 0 } = {}) {
      const leafKeys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
      serial++;
      const leaf = await x509.X509CertificateGenerator.create({
        serialNumber: serial.toString(16).padStart(16, "0"),
        subject: `CN=${names[0]}`,
        issuer,
        notBefore: new Date(Date.now() - startedDaysAgo * DAY_MS),
        notAfter: new Date(Date.now() + (days - startedDaysAgo) * DAY_MS),
        publicKey: leafKeys.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new x509.SubjectAlternativeNameExtension([
            ...names.map((value) => ({ type: "dns" as const, value })),
            { type: "ip" as const, value: "127.0.0.1" },
          ]),
        ],
      });
      return { cert: `${leaf.toString("pem")}\n${cert}`, key: await pem(leafKeys.privateKey) };
    },
  };
}
