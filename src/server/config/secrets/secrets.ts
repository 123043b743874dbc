import { chmodSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Ids } from "../../../kernel/ids.ts";
import { isJsonObject } from "../../../kernel/json/json.ts";
import { replaceSmallFile } from "../../disk/small-file.ts";
import { JWT_SECRET_MIN_BYTES } from "../limits.ts";
import { serviceKeyProblem } from "./service-key-text.ts";

export const SECRETS_FILE = "secrets.json";
/** The size of a generated secret: 256 bits, 43 characters of base64url. */
const GENERATED_BYTES = 32;
const SERVICE_KEY_PREFIX = "psk_";
const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

export interface Secrets {
  serviceKey: string;
  jwtSecret: string;
}

export interface ResolvedSecrets {
  secrets: Secrets;
  /** The root service key if this call generated it, to be shown once; null otherwise. */
  newServiceKey: string | null;
  /** Corrections, for the log. */
  warnings: string[];
}

type Environment = Readonly<Record<string, string | undefined>>;
type StoredSecrets = Partial<Secrets>;

/** The error of an invalid secret, or an unreadable secrets file. The message never contains a secret. */
export class SecretsError extends Error {
  override readonly name = "SecretsError";
}

/**
 * Resolves `PLATFORM_SERVICE_KEY` and `PLATFORM_JWT_SECRET`. An unset or empty variable is replaced by the value of
 * `<data>/secrets.json`, which is generated when it is missing.
 */
export function resolveSecrets(options: {
  dataDirectory: string;
  environment: Environment;
  ids: Ids;
}): ResolvedSecrets {
  const { dataDirectory, environment, ids } = options;
  const path = join(dataDirectory, SECRETS_FILE);
  const warnings: string[] = [];
  const given = fromEnvironment(environment);
  if (given.serviceKey !== undefined && given.jwtSecret !== undefined) {
    return { secrets: { serviceKey: given.serviceKey, jwtSecret: given.jwtSecret }, newServiceKey: null, warnings };
  }
  const stored = readSecrets(path, warnings);
  const serviceKey = given.serviceKey ?? stored.serviceKey ?? generateServiceKey(ids);
  const jwtSecret = given.jwtSecret ?? stored.jwtSecret ?? ids.secret(GENERATED_BYTES);
  const next: StoredSecrets = { ...stored };
  if (given.serviceKey === undefined) next.serviceKey = serviceKey;
  if (given.jwtSecret === undefined) next.jwtSecret = jwtSecret;
  if (next.serviceKey !== stored.serviceKey || next.jwtSecret !== stored.jwtSecret) writeSecrets(path, next);
  const isNew = given.serviceKey === undefined && stored.serviceKey === undefined;
  return { secrets: { serviceKey, jwtSecret }, newServiceKey: isNew ? serviceKey : null, warnings };
}

/** Returns the secrets of the environment, where both have to be: all nodes of a cluster have the same ones. Errors: `SecretsError`. */
export function environmentSecrets(environment: Environment): Secrets {
  const { jwtSecret, serviceKey } = fromEnvironment(environment);
  const missing = jwtSecret === undefined ? "PLATFORM_JWT_SECRET" : "PLATFORM_SERVICE_KEY";
  if (jwtSecret === undefined || serviceKey === undefined)
    throw new SecretsError(`${missing} must be set: all nodes of a cluster have the same secrets`);
  return { jwtSecret, serviceKey };
}

/** Returns the root service key stored in a data directory; null when none is. Errors: `SecretsError`. */
export function storedServiceKey(dataDirectory: string): string | null {
  return readSecrets(join(dataDirectory, SECRETS_FILE), []).serviceKey ?? null;
}

/** Replaces the root service key of a data directory and returns the new one. */
export function rotateServiceKey(dataDirectory: string, ids: Ids): string {
  const path = join(dataDirectory, SECRETS_FILE);
  const serviceKey = generateServiceKey(ids);
  writeSecrets(path, { ...readSecrets(path, []), serviceKey });
  return serviceKey;
}

const generateServiceKey = (ids: Ids): string => `${SERVICE_KEY_PREFIX}${ids.secret(GENERATED_BYTES)}`;

function fromEnvironment(environment: Environment): StoredSecrets {
  const given: StoredSecrets = {};
  // Empty counts as unset: container files pass unset variables on as empty texts.
  const serviceKey = environment["PLATFORM_SERVICE_KEY"] ?? "";
  const jwtSecret = environment["PLATFORM_JWT_SECRET"] ?? "";
  if (serviceKey !== "") given.serviceKey = usableServiceKey(serviceKey, "PLATFORM_SERVICE_KEY");
  if (jwtSecret !== "") given.jwtSecret = usableJwtSecret(jwtSecret, "PLATFORM_JWT_SECRET");
  return given;
}

function usableServiceKey(value: string, name: string): string {
  const problem = serviceKeyProblem(value);
  if (problem === null) return value;
  throw new SecretsError(`${name} ${problem}`);
}

function usableJwtSecret(value: string, name: string): string {
  const byteCount = Buffer.byteLength(value);
  if (byteCount >= JWT_SECRET_MIN_BYTES) return value;
  throw new SecretsError(`${name} must be at least ${JWT_SECRET_MIN_BYTES} bytes long, got ${byteCount}`);
}

function readSecrets(path: string, warnings: string[]): StoredSecrets {
  let text: string;
  try {
    const mode = statSync(path).mode & 0o777;
    // Windows reports meaningless modes.
    if ((mode & OTHERS) !== 0 && process.platform !== "win32") {
      chmodSync(path, OWNER_ONLY);
      warnings.push(`${path} could be read by others (mode ${mode.toString(8)}); it is now 600`);
    }
    text = readFileSync(path, "utf8");
  } catch (cause) {
    // The error of a system call carries its code.
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new SecretsError(`${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
  return parseSecrets(text, path);
}

function parseSecrets(text: string, path: string): StoredSecrets {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own message would quote the text, which is a secret.
    throw new SecretsError(`${path} is not valid JSON; mend it, or remove it to have new secrets generated`);
  }
  if (!isJsonObject(value)) throw new SecretsError(`${path} must hold a JSON object`);
  const { serviceKey, jwtSecret } = value;
  const stored: StoredSecrets = {};
  if (serviceKey !== undefined) {
    if (typeof serviceKey !== "string") throw new SecretsError(`serviceKey in ${path} must be a string`);
    stored.serviceKey = usableServiceKey(serviceKey, `serviceKey in ${path}`);
  }
  if (jwtSecret !== undefined) {
    if (typeof jwtSecret !== "string") throw new SecretsError(`jwtSecret in ${path} must be a string`);
    stored.jwtSecret = usableJwtSecret(jwtSecret, `jwtSecret in ${path}`);
  }
  return stored;
}

/** Writes the secrets durably before the key is shown: a power cut must not lose a key that somebody has noted. */
function writeSecrets(path: string, secrets: StoredSecrets): void {
  mkdirSync(dirname(path), { recursive: true });
  replaceSmallFile(path, `${JSON.stringify(secrets, null, 2)}\n`);
}
