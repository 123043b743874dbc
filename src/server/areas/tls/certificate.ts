import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Millis } from "../../../kernel/clock.ts";

/** A certificate and its key in PEM. `cert` is followed by the certificates of its issuers. */
export interface CertificatePair {
  cert: string;
  key: string;
}

export interface CertificateFacts {
  /** The hosts of the certificate: names first, then addresses in URL form, both in the certificate's order. */
  names: readonly string[];
  validFrom: Millis;
  validUntil: Millis;
}

/** The error of an invalid certificate, for messages. */
export class CertificateError extends Error {
  override readonly name = "CertificateError";
}

const KEY_BLOCK = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[\s\S]+?-----END (?:[A-Z]+ )?PRIVATE KEY-----/;
const CERTIFICATE_BEGIN = /^-----BEGIN CERTIFICATE-----/gm;
const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Splits a key and certificates in one text. Errors: CertificateError if there is no key or no certificate. */
export function splitPem(text: string): CertificatePair {
  const key = KEY_BLOCK.exec(text)?.[0];
  const certificates = text.match(CERTIFICATE_BLOCK);
  if (key === undefined || certificates === null) throw new CertificateError("has no key or no certificate in PEM");
  return { cert: `${certificates.join("\n")}\n`, key: `${key}\n` };
}

/**
 * Parses the facts of a certificate. Errors: CertificateError if a certificate or the key cannot be read, or the first certificate
 * is not that of the key.
 */
export function factsOf({ cert, key }: CertificatePair): CertificateFacts {
  const certificate = parsed("certificate", () => new X509Certificate(cert));
  const privateKey = parsed("private key", () => createPrivateKey(key));
  const issuers = issuersIn(cert);
  if (!certificate.checkPrivateKey(privateKey)) {
    const isLater = issuers.some((each) => each.checkPrivateKey(privateKey));
    const problem = isLater
      ? "the certificate of the key is not the first one"
      : "the key is not that of the certificate";
    throw new CertificateError(problem);
  }
  return {
    names: namesOf(certificate),
    validFrom: Date.parse(certificate.validFrom),
    validUntil: Date.parse(certificate.validTo),
  };
}

/** Whether a certificate covers this host: by name, or by one label in place of `*`. */
export function covers({ names }: Pick<CertificateFacts, "names">, host: string): boolean {
  const parent = host.slice(host.indexOf(".") + 1);
  return names.some((name) => name === host || (name.startsWith("*.") && name.slice(2) === parent && parent !== host));
}

/** Parses the certificates after the first. A server does not listen with a file that has a broken one. */
function issuersIn(cert: string): X509Certificate[] {
  const begun = cert.match(CERTIFICATE_BEGIN)?.length ?? 0;
  const blocks = cert.match(CERTIFICATE_BLOCK) ?? [];
  return Array.from({ length: begun - 1 }, (_, index) =>
    parsed(`certificate ${index + 2} of the file`, () => new X509Certificate(blocks[index + 1] ?? "")),
  );
}

function parsed<Value>(what: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (cause) {
    throw new CertificateError(`the ${what} cannot be read`, { cause });
  }
}

function namesOf({ subjectAltName = "" }: X509Certificate): string[] {
  const listed = (kind: string) =>
    [...subjectAltName.matchAll(new RegExp(`(?:^|, )${kind}:([^,"]+)`, "g"))].map(([, name = ""]) =>
      name.toLowerCase(),
    );
  return [...listed("DNS"), ...listed("IP Address").map(urlHostOf)];
}

const urlHostOf = (address: string): string =>
  address.includes(":") ? (URL.parse(`http://[${address}]`)?.hostname ?? address) : address;
