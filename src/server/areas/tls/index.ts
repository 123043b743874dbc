import type { Clock } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { CheckResult, HealthChecks } from "../../../kernel/observing/health.ts";
import type { AcmeConfig, CertificateFiles } from "../../config/types.ts";
import type { Certificate } from "../../http/listening/listener.ts";
import { createSteering, type Steering } from "../../http/listening/steering.ts";
import { AcmeFiles } from "./acme/files.ts";
import { CertificateError, type CertificateFacts, type CertificatePair, covers, factsOf } from "./certificate.ts";
import { HTTP_PORT_DEFAULT, type HttpPort, openHttpPort } from "./http-port.ts";
import { createCertificateProcess, type RunCertificateJob } from "./job/process.ts";
import { ENDING_MS, SELF_SIGNED_LEFT_MIN_MS } from "./limits.ts";
import { Renewals } from "./renewals.ts";
import { type CertificateSource, filesSource } from "./source.ts";
import { FileWatch } from "./watch.ts";

const HTTPS_PORT = 443;

export interface TlsDeps {
  config: AcmeConfig | CertificateFiles;
  dataDirectory: string;
  /** Whether this is a drill, which obtains no certificates. */
  isDrill: boolean;
  /** The target of redirects, if it is HTTPS: the port that clients see may differ. */
  publicUrl: string | undefined;
  clock: Clock;
  logger: Logger;
  health: HealthChecks;
  run?: RunCertificateJob;
}

interface Current {
  facts: CertificateFacts;
  isSelfSigned: boolean;
}

export type TlsArea = ReturnType<typeof createTlsArea>;

/** Creates HTTPS for one server: its certificate, renewals and the HTTP port. The rules are in SPEC.md. */
export function createTlsArea(deps: TlsDeps) {
  const { config, clock, logger, dataDirectory, isDrill } = deps;
  const run = deps.run ?? createCertificateProcess(clock);
  const files = new AcmeFiles(dataDirectory);
  const acme = "domains" in config ? config : null;
  const source = "domains" in config ? acmeSource(files) : filesSource(config);
  let current: Current | null = null;
  let renewals: Renewals | null = null;
  let httpPort: HttpPort | null = null;
  /** The reason for refusing the changed files; null: none. */
  let refused: string | null = null;

  deps.health.add("certificate", () => check(current, renewals?.problem ?? refused, clock.now()));

  const firstPair = async (): Promise<CertificatePair> => {
    const stored = readFirst(source, { isRequired: acme === null, logger });
    if (stored !== null) {
      current = { facts: factsOf(stored), isSelfSigned: false };
      return stored;
    }
    // Self-signed until the authority issues a certificate, which only a server with domains can have.
    const own = acme === null ? null : await selfSigned(acme, { files, run, dataDirectory, clock });
    if (own === null) throw new CertificateError("there is no certificate");
    current = { facts: factsOf(own), isSelfSigned: true };
    return own;
  };
  const publicHost = (): string | null =>
    acme?.domains[0] ?? current?.facts.names.find((name) => !name.startsWith("*")) ?? null;

  let renew: (certificate: Certificate) => void = () => {};
  const takeOver = (): boolean => {
    try {
      const pair = source.read();
      if (pair === null) return true;
      const facts = factsOf(pair);
      renew(pair);
      current = { facts, isSelfSigned: false };
      refused = null;
      logger.info("tls: the server uses a new certificate", describe(facts));
      return true;
    } catch (cause) {
      // Retried, as another program may still be writing; logged once.
      const problem = `The changed certificate is not used: ${reasonOf(cause)}`;
      if (problem !== refused) logger.warn("tls: the changed certificate was refused", { files: source.paths, cause });
      refused = problem;
      return false;
    }
  };

  // Created before the files are read: a later change is seen.
  const watch = new FileWatch(source.paths, { clock, onChange: takeOver });

  return {
    /** Returns the certificate to listen with. Errors: invalid certificate files. */
    async open(): Promise<Certificate & { publicHost: string | null; steering: Steering | null }> {
      const { cert, key } = await firstPair();
      return { cert, key, publicHost: publicHost(), steering: createSteering() };
    },
    /** Begins renewals once the server listens: `renew` replaces its certificate. Errors: the HTTP port is not available. */
    begin({ host, port, ...listening }: { host: string; port: number; renew(certificate: Certificate): void }): void {
      renew = listening.renew;
      const wanted = "domains" in config ? (config.challengePort ?? HTTP_PORT_DEFAULT) : config.redirectPort;
      if (wanted !== undefined) {
        httpPort = openHttpPort({
          host,
          port: wanted,
          challenge: (token) => (acme === null ? null : files.readChallenge(token)),
          redirect: redirects({ publicUrl: deps.publicUrl, port, facts: () => current?.facts ?? null, publicHost }),
        });
      }
      watch.start();
      if (acme === null || isDrill) return;
      const inUse = () => (current === null || current.isSelfSigned ? null : current.facts);
      // A stored certificate that the server cannot use yet still counts: another one would be equally unusable.
      const facts = () => storedFacts(files) ?? inUse();
      const onRenewed = () => watch.look();
      renewals = new Renewals({ config: acme, dataDirectory, files, clock, logger, run, facts, onRenewed });
      renewals.start();
    },
    async stop(): Promise<void> {
      watch.stop();
      await Promise.all([renewals?.stop(), httpPort?.stop()]);
    },
  };
}

const acmeSource = (files: AcmeFiles): CertificateSource => ({
  paths: [files.certificate],
  read: () => files.readCertificate(),
});

/** Reads the first certificate. A stored one that is broken counts as none: the server obtains another. Errors: those of required files. */
function readFirst(
  source: CertificateSource,
  { isRequired, logger }: { isRequired: boolean; logger: Logger },
): CertificatePair | null {
  try {
    const pair = source.read();
    if (pair !== null) factsOf(pair);
    return pair;
  } catch (cause) {
    const problem = `server.tls: ${source.paths.join(", ")}: ${reasonOf(cause)}`;
    if (isRequired) throw new CertificateError(problem, { cause });
    logger.error(problem);
    return null;
  }
}

/** Returns the facts of the stored certificate of the authority; null without one, or where it is broken. */
function storedFacts(files: AcmeFiles): CertificateFacts | null {
  const pair = readQuietly(() => files.readCertificate());
  return pair === null ? null : factsOf(pair);
}

async function selfSigned(
  config: AcmeConfig,
  deps: { files: AcmeFiles; run: RunCertificateJob; dataDirectory: string; clock: Clock },
): Promise<CertificatePair | null> {
  const { files, run, dataDirectory, clock } = deps;
  const stored = readQuietly(() => files.readSelfSigned());
  if (stored !== null) {
    const facts = factsOf(stored);
    const isLasting = facts.validUntil - clock.now() > SELF_SIGNED_LEFT_MIN_MS;
    if (isLasting && config.domains.every((name) => covers(facts, name))) return stored;
  }
  await run({ kind: "selfSign", dataDirectory, config }, new AbortController().signal);
  return files.readSelfSigned();
}

function readQuietly(read: () => CertificatePair | null): CertificatePair | null {
  try {
    const pair = read();
    if (pair !== null) factsOf(pair);
    return pair;
  } catch {
    return null;
  }
}

/** Creates the function that returns the origin to which a host's requests are redirected: only a host of the certificate is preserved. */
function redirects(deps: {
  publicUrl: string | undefined;
  port: number;
  facts: () => CertificateFacts | null;
  publicHost: () => string | null;
}): (host: string) => string | null {
  const given = deps.publicUrl === undefined ? null : URL.parse(deps.publicUrl);
  const isGiven = given?.protocol === "https:";
  const port = isGiven ? Number(given?.port || HTTPS_PORT) : deps.port;
  const suffix = port === HTTPS_PORT ? "" : `:${port}`;
  return (host) => {
    const facts = deps.facts();
    if (facts !== null && covers(facts, host)) return `https://${host}${suffix}`;
    const fallback = isGiven ? (given?.hostname ?? null) : deps.publicHost();
    return fallback === null ? null : `https://${fallback}${suffix}`;
  };
}

const describe = ({ names, validUntil }: CertificateFacts) => ({
  names,
  validUntil: new Date(validUntil).toISOString(),
});

function check(current: Current | null, problem: string | null, now: number): CheckResult {
  if (current === null) return { ok: false, validUntil: null, selfSigned: false, problem };
  const { facts, isSelfSigned } = current;
  return {
    ok: !isSelfSigned && facts.validFrom <= now && facts.validUntil - now > ENDING_MS && problem === null,
    validUntil: new Date(facts.validUntil).toISOString(),
    selfSigned: isSelfSigned,
    problem,
  };
}
