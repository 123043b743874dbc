import type { Clock } from "../../../../kernel/clock.ts";
import { reasonOf, whyUnanswered } from "../../../../kernel/errors.ts";
import type { AcmeConfig } from "../../../config/types.ts";
import { DirectoryInUse, lockDirectory } from "../../../db/index.ts";
import { outgoingFetch } from "../../../http/outgoing/call.ts";
import { CertificateError, type CertificateFacts, type CertificatePair, factsOf } from "../certificate.ts";
import { ANSWER_MAX_BYTES, REQUEST_TIMEOUT_MS } from "../limits.ts";
import type { AcmeFiles } from "./files.ts";
import { failed, NO_FAILURE, orderOf } from "./renewal-time.ts";

const DIRECTORY_DEFAULT = "https://acme-v02.api.letsencrypt.org/directory";

/**
 * Obtains a certificate by ACME and stores it, while something answers the challenges in `files` on port 80. Only one process does
 * so at a time. Errors: CertificateError; the failure is then on disk, with the time of the next attempt.
 */
export async function issueCertificate(
  config: AcmeConfig,
  deps: { files: AcmeFiles; clock: Clock },
): Promise<CertificateFacts> {
  const { files, clock } = deps;
  files.make();
  const lock = lockRenewals(files);
  try {
    const before = files.readState();
    const order = orderOf(config);
    // First, as this process may be killed: a server in a restart loop must not send a request to the authority each time.
    files.writeState(failed(before, { order, problem: "It was interrupted", now: clock.now() }));
    try {
      const pair = await orderCertificate(config, files);
      const facts = factsOf(pair);
      files.writeCertificate(pair);
      files.writeState(NO_FAILURE);
      return facts;
    } catch (cause) {
      const problem = reasonOf(cause);
      files.writeState(failed(before, { order, problem, now: clock.now() }));
      throw new CertificateError(problem, { cause });
    }
  } finally {
    files.removeChallenges();
    lock.release();
  }
}

function lockRenewals(files: AcmeFiles) {
  try {
    return lockDirectory(files.directory);
  } catch (cause) {
    if (cause instanceof DirectoryInUse) throw new CertificateError("another process is getting it", { cause });
    throw cause;
  }
}

/** Orders a certificate. An account that the authority no longer knows is replaced, once. */
async function orderCertificate(config: AcmeConfig, files: AcmeFiles): Promise<CertificatePair> {
  const { directory = DIRECTORY_DEFAULT } = config;
  try {
    return await order(config, files);
  } catch (cause) {
    const isUnknown =
      cause instanceof Error && /accountDoesNotExist|account .*not found|unable to find account/i.test(cause.message);
    if (!isUnknown || files.readAccount(directory) === null) throw cause;
    files.removeAccount(directory);
    return order(config, files);
  }
}

async function order({ domains, email, directory = DIRECTORY_DEFAULT }: AcmeConfig, files: AcmeFiles) {
  const acme = await loadLibrary();
  const account = files.readAccount(directory);
  const accountKey = account?.key ?? (await acme.crypto.createPrivateEcdsaKey()).toString();
  const client = new acme.Client({
    directoryUrl: directory,
    accountKey,
    ...(account === null ? {} : { accountUrl: account.url }),
  });
  if (account === null) {
    const contact = email === undefined ? {} : { contact: [`mailto:${email}`] };
    await client.createAccount({ termsOfServiceAgreed: true, ...contact });
    files.writeAccount(directory, { key: accountKey, url: client.getAccountUrl() });
  }
  const [key, csr] = await acme.crypto.createCsr(
    { commonName: domains[0] ?? "", altNames: [...domains] },
    await acme.crypto.createPrivateEcdsaKey(),
  );
  const cert = await client.auto({
    csr,
    challengePriority: ["http-01"],
    // The library's check uses the system's DNS, which may see another network than the authority.
    skipChallengeVerification: true,
    challengeCreateFn: async (_, challenge, answer) => files.writeChallenge(challenge.token, answer),
    challengeRemoveFn: async (_, challenge) => files.removeChallenge(challenge.token),
  });
  return { cert, key: key.toString() };
}

/** The members of the library's request that are read here. */
interface LibraryRequest {
  url?: string;
  method?: string;
  headers: { toJSON(): Record<string, unknown> };
  data?: string;
}

async function loadLibrary() {
  // One of the library's dependencies requires it when it is evaluated.
  await import("reflect-metadata");
  const acme = await import("acme-client");
  // The library's types lack `acmeSettings`, and those of its HTTP client belong to another package.
  const defaults = acme.axios.defaults as unknown as { acmeSettings: object; adapter: typeof send };
  // The library's retries would count towards the limits of the authority; ours are far apart.
  Object.assign(defaults.acmeSettings, { retryMaxAttempts: 0 });
  defaults.adapter = send;
  return acme;
}

/**
 * Sends a request of the library, whose own adapter loses the cause of a failed connection. Errors: those of `outgoingFetch`, with
 * the host.
 */
async function send(config: LibraryRequest) {
  const { url = "", method = "get", headers, data } = config;
  try {
    const response = await outgoingFetch(url, {
      method: method.toUpperCase(),
      headers: Object.entries(headers.toJSON()).map(([name, value]): [string, string] => [name, String(value)]),
      body: data ?? null,
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      maxBytes: ANSWER_MAX_BYTES,
    });
    const { status, statusText } = response;
    const text = await response.text();
    return { status, statusText, headers: Object.fromEntries(response.headers), data: text, config, request: null };
  } catch (cause) {
    throw new CertificateError(`${new URL(url).host} does not answer: ${whyUnanswered(cause)}`, { cause });
  }
}
