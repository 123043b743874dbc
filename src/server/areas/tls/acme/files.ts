import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isMissing } from "../../../../kernel/errors.ts";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import { replaceSmallFile } from "../../../disk/small-file.ts";
import { type CertificatePair, splitPem } from "../certificate.ts";
import { NO_FAILURE, parseState, type RenewalState } from "./renewal-time.ts";

const DIRECTORY_MODE = 0o700;
/** Matches tokens of RFC 8555. A name of this form cannot leave the directory. */
const TOKEN = /^[A-Za-z0-9_-]{1,255}$/;

/** An account at a certificate authority. */
export interface Account {
  /** The private key of the account, in PEM. */
  key: string;
  url: string;
}

/**
 * The files of the server's certificates, in `tls` of the data directory, readable by its owner only. Several processes use them:
 * the server, the process that renews, and the command line.
 */
export class AcmeFiles {
  readonly directory: string;
  readonly certificate: string;
  readonly #dataDirectory: string;

  constructor(dataDirectory: string) {
    this.#dataDirectory = dataDirectory;
    this.directory = join(dataDirectory, "tls");
    this.certificate = join(this.directory, "certificate.pem");
  }

  /** Reads the certificate of the authority; null without one. Errors: CertificateError. */
  readCertificate(): CertificatePair | null {
    return this.#readPair(this.certificate);
  }

  readSelfSigned(): CertificatePair | null {
    return this.#readPair(this.#path("self-signed.pem"));
  }

  writeCertificate(pair: CertificatePair): void {
    this.#write("certificate.pem", pair.key + pair.cert);
  }

  writeSelfSigned(pair: CertificatePair): void {
    this.#write("self-signed.pem", pair.key + pair.cert);
  }

  /** Reads the account at a certificate authority, by its directory's URL; null without one that can be read. */
  readAccount(directoryUrl: string): Account | null {
    return parseAccount(read(this.#path(accountFile(directoryUrl))) ?? "");
  }

  writeAccount(directoryUrl: string, account: Account): void {
    this.#write(accountFile(directoryUrl), `${JSON.stringify(account)}\n`);
  }

  removeAccount(directoryUrl: string): void {
    rmSync(this.#path(accountFile(directoryUrl)), { force: true });
  }

  /** Reads the state. An unreadable file counts as none: it only affects delays. */
  readState(): RenewalState {
    try {
      return parseState(read(this.#path("state.json")) ?? "");
    } catch {
      return NO_FAILURE;
    }
  }

  writeState(state: RenewalState): void {
    this.#write("state.json", `${JSON.stringify(state)}\n`);
  }

  /** Reads the answer to a challenge; null where there is none. */
  readChallenge(token: string): string | null {
    return TOKEN.test(token) ? read(this.#path("challenges", token)) : null;
  }

  writeChallenge(token: string, answer: string): void {
    if (!TOKEN.test(token)) throw new Error("The certificate authority sent a token that is none");
    this.#makeDirectory(this.#path("challenges"));
    this.#write(join("challenges", token), answer);
  }

  removeChallenge(token: string): void {
    if (TOKEN.test(token)) rmSync(this.#path("challenges", token), { force: true });
  }

  /** Removes the challenges that a killed process has left. */
  removeChallenges(): void {
    const directory = this.#path("challenges");
    if (!existsSync(directory)) return;
    for (const name of readdirSync(directory)) rmSync(join(directory, name), { force: true });
  }

  make(): void {
    this.#makeDirectory(this.directory);
  }

  #path(...names: string[]): string {
    return join(this.directory, ...names);
  }

  #readPair(path: string): CertificatePair | null {
    const text = read(path);
    return text === null ? null : splitPem(text);
  }

  #write(name: string, text: string): void {
    this.make();
    const path = this.#path(name);
    replaceSmallFile(path, text);
    this.#adopt(path);
  }

  #makeDirectory(path: string): void {
    if (existsSync(path)) return;
    mkdirSync(path, { recursive: true, mode: DIRECTORY_MODE });
    this.#adopt(path);
  }

  /** Changes the owner of a file that root wrote at the command line: the server's own account must be able to read it. */
  #adopt(path: string): void {
    if (process.getuid?.() !== 0) return;
    const { uid, gid } = statSync(this.#dataDirectory);
    if (uid !== 0) chownSync(path, uid, gid);
  }
}

/** Returns the account's file of an authority; authorities do not share accounts. */
function accountFile(directoryUrl: string): string {
  const hash = new Bun.CryptoHasher("sha256").update(directoryUrl).digest("hex");
  return `account-${hash.slice(0, 16)}.json`;
}

function parseAccount(text: string): Account | null {
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) return null;
    const { key, url } = value;
    return typeof key === "string" && typeof url === "string" ? { key, url } : null;
  } catch {
    return null;
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw cause;
  }
}
