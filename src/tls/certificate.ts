import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Millis } from "../kernel/clock.ts";

/** In PEM. `cert` is followed by the certificates of its issuers. */
export interface CertificatePair {
  cert: string;
  key: string;
}

export interface CertificateFacts {
  /** The host names that it is for, in its order. */
  names: readonly string[];
  validFrom: Millis;
  validUntil: Millis;
}

/** What is wrong with a certificate, for messages. */
export class CertificateError extends Error {
  override readonly name = "CertificateError";
}

const KEY_BLOCK = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[\s\S]+?-----END (?:[A-Z]+ )?PRIVATE KEY-----/;
const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** A key and certificates in one text. Errors: CertificateError if there is no key or no certificate. */
export function splitPem(text: string): CertificatePair {
  const key = KEY_BLOCK.exec(text)?.[0];
  const certificates = text.match(CERTIFICATE_BLOCK);
  if (key === undefined || certificates === null) throw new CertificateError("has no key or no certificate in PEM");
  return { cert: `${certificates.join("\n")}\n`, key: `${key}\n` };
}

/** Errors: CertificateError if the certificate or the key cannot be read, or they do not belong together. */
export function factsOf({ cert, key }: CertificatePair): CertificateFacts {
  const certificate = parsed("certificate", () => new X509Certificate(cert));
  const privateKey = parsed("private key", () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new CertificateError("the key is not that of the certificate");
  return {
    names: namesOf(certificate),
    validFrom: Date.parse(certificate.validFrom),
    validUntil: Date.parse(certificate.validTo),
  };
}

/** Whether a certificate is for this host: by name, or by one label in place of `*`. */
export function covers({ names }: Pick<CertificateFacts, "names">, host: string): boolean {
  const parent = host.slice(host.indexOf(".") + 1);
  return names.some((name) => name === host || (name.startsWith("*.") && name.slice(2) === parent && parent !== host));
}

function parsed<Value>(what: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (cause) {
    throw new CertificateError(`the ${what} cannot be read`, { cause });
  }
}

function namesOf({ subjectAltName = "" }: X509Certificate): string[] {
  return [...subjectAltName.matchAll(/(?:^|, )DNS:([^,"]+)/g)].map(([, name = ""]) => name.toLowerCase());
}
