import { Type } from "typebox";
import { DOMAIN_LENGTH_MAX, DOMAINS_MAX, PORT_MAX } from "../../limits.ts";
import { describe } from "../../shape/report.ts";
import { list, refined, text, textWith, url, whole } from "../../shape/schema.ts";

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const domain = () =>
  textWith((value) => {
    if (value.startsWith("*.")) return `must not have a wildcard, which HTTP-01 cannot prove, got ${describe(value)}`;
    const labels = value.split(".");
    const isName = value.length <= DOMAIN_LENGTH_MAX && labels.every((label) => LABEL.test(label));
    // A top-level domain is never a number: the whole would be an IPv4 address.
    if (isName && !/^\d+$/.test(labels.at(-1) ?? "")) return null;
    return `must be a host name in lower case, such as api.example.com, got ${describe(value)}`;
  });

const domains = refined(list(domain()), (value, report) => {
  if (value.length > DOMAINS_MAX) report.say(`must have at most ${DOMAINS_MAX} entries, got ${value.length}`);
  const twice = value.find((name, index) => value.indexOf(name) !== index);
  if (twice !== undefined) report.say(`has ${describe(twice)} twice`);
});

const port = () => Type.Optional(whole({ min: 1, max: PORT_MAX }));
const mailAddress = textWith((value) =>
  /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value) ? null : `must be an email address, got ${describe(value)}`,
);

const Members = Type.Object({
  domains: Type.Optional(domains),
  email: Type.Optional(mailAddress),
  directory: Type.Optional(url("https")),
  challengePort: port(),
  cert: Type.Optional(text()),
  key: Type.Optional(text()),
  redirectPort: port(),
});

const ACME_ONLY = ["email", "directory", "challengePort"] as const;
const FILES_ONLY = ["cert", "key", "redirectPort"] as const;

const checked = refined(Members, (value, report) => {
  const isAcme = value.domains !== undefined;
  const isFiles = value.cert !== undefined && value.key !== undefined;
  if (!isAcme && !isFiles) return report.say("must have either domains, or cert and key");
  for (const name of isAcme ? FILES_ONLY : ACME_ONLY) {
    if (value[name] !== undefined) report.at(name).say(isAcme ? "does not go with domains" : "does not go with cert");
  }
});

/** Certificates that the server obtains and renews itself. */
export interface AcmeConfig {
  /** The names of the certificate. Links use the first one, unless there is a `publicUrl`. */
  domains: readonly string[];
  /** The address for notices of the certificate authority. None by default. */
  email?: string;
  /** The ACME directory of another certificate authority. Let's Encrypt by default. */
  directory?: string;
  /** The HTTP port, which answers challenges and redirects everything else; 80 by default. */
  challengePort?: number;
}

/** A certificate that another program renews. */
export interface CertificateFiles {
  /** A PEM file with the certificate, followed by those of its issuers. Both files are reloaded when they change. */
  cert: string;
  /** A PEM file with its private key. */
  key: string;
  /** An HTTP port that redirects to HTTPS. None by default. */
  redirectPort?: number;
}

export const Tls = Type.Unsafe<AcmeConfig | CertificateFiles>(checked);
