import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { calculateJwkThumbprint, exportJWK, importJWK, type JWK } from "jose";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { isJsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { startSweeping } from "../../../../kernel/time/sweeping.ts";
import { CLOCK_SKEW_MS } from "../../../access/limits.ts";
import { TOKEN_KEYS_FILE, TOKEN_ROTATION_FILE } from "../../../config/secrets/token-rotation.ts";
import { replaceSmallFile } from "../../../disk/small-file.ts";
import { TOKEN_KEYS_CHECK_MS, TOKEN_KEYS_MAX } from "../limits.ts";
import type { Sealing } from "../store/sealing.ts";

const ALGORITHM = "ES256";

/** A key as the file has it. */
interface StoredKey {
  kid: string;
  createdAt: Millis;
  /** The longest life of the tokens that it has signed. */
  tokenTtlMs: Millis;
  /** The private JWK, sealed with the server's secret. */
  sealed: string;
}

interface TokenKey {
  readonly stored: StoredKey;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  readonly published: JWK;
}

export interface TokenKeysDeps {
  dataDirectory: string;
  sealing: Sealing;
  tokenTtlMs: Millis;
  rotateMs: Millis;
  clock: Clock;
  logger: Logger;
}

/**
 * The keys of access tokens that others verify, in `token-keys.json`. The newest signs; an older one stays until the last token that
 * it has signed has expired. A new key is on disk before it signs. [AU321]
 */
export class TokenKeys {
  readonly #deps: TokenKeysDeps;
  readonly #path: string;
  readonly #requestPath: string;
  /** Newest first. Never empty once open. */
  #keys: readonly TokenKey[] = [];
  #stop: () => Promise<void> = async () => {};

  private constructor(deps: TokenKeysDeps) {
    this.#deps = deps;
    this.#path = join(deps.dataDirectory, TOKEN_KEYS_FILE);
    this.#requestPath = join(deps.dataDirectory, TOKEN_ROTATION_FILE);
  }

  /** Reads the keys and makes the first one. Errors: the file cannot be written. */
  static async open(deps: TokenKeysDeps): Promise<TokenKeys> {
    const keys = new TokenKeys(deps);
    keys.#keys = await keys.#read();
    await keys.#settle();
    keys.#stop = startSweeping({
      clock: deps.clock,
      intervalMs: TOKEN_KEYS_CHECK_MS,
      pauseMs: TOKEN_KEYS_CHECK_MS,
      async sweep() {
        await keys.#settle();
        return false;
      },
      onFailure: (cause) => deps.logger.error("The keys of access tokens cannot be replaced", { cause }),
    });
    return keys;
  }

  get signing(): { kid: string; key: CryptoKey } {
    const [newest] = this.#keys;
    if (newest === undefined) throw new Error("no key of access tokens is there");
    return { kid: newest.stored.kid, key: newest.privateKey };
  }

  /** Returns the public key of that id; null: it is unknown, or its tokens have expired. */
  publicKey(kid: string): CryptoKey | null {
    return this.#keys.find(({ stored }) => stored.kid === kid)?.publicKey ?? null;
  }

  /** The public keys, newest first. */
  get published(): readonly JWK[] {
    return this.#keys.map(({ published }) => published);
  }

  stop(): Promise<void> {
    return this.#stop();
  }

  /** Makes a key where one is due, and removes those whose tokens have expired. */
  async #settle(): Promise<void> {
    const { clock, logger, rotateMs, tokenTtlMs } = this.#deps;
    const now = clock.now();
    const isAsked = existsSync(this.#requestPath);
    const [newest] = this.#keys;
    const isDue = isAsked || newest === undefined || now - newest.stored.createdAt >= rotateMs;
    const present = this.#keys.filter((_, index) => !this.#isOver(index, now));
    const hasRoom = present.length < TOKEN_KEYS_MAX;
    if (isDue && !hasRoom) {
      logger.warn("No new key of access tokens: too many older ones have valid tokens", { keys: present.length });
    }
    const made = isDue && hasRoom ? [await this.#make(now)] : [];
    const isLonger = (newest?.stored.tokenTtlMs ?? tokenTtlMs) < tokenTtlMs;
    if (made.length > 0 || present.length < this.#keys.length || isLonger) {
      const next = [...made, ...present];
      const [signing] = next;
      if (signing !== undefined) signing.stored.tokenTtlMs = Math.max(signing.stored.tokenTtlMs, tokenTtlMs);
      const stored = next.map((key) => key.stored);
      replaceSmallFile(this.#path, `${JSON.stringify({ keys: stored }, null, 2)}\n`);
      this.#keys = next;
    }
    if (isAsked) rmSync(this.#requestPath, { force: true });
  }

  /** Whether the tokens of a key have expired: the next newer one has replaced it longer ago than they live. */
  #isOver(index: number, now: Millis): boolean {
    const [key, newer] = [this.#keys[index], this.#keys[index - 1]];
    if (key === undefined || newer === undefined) return false;
    return newer.stored.createdAt + key.stored.tokenTtlMs + CLOCK_SKEW_MS <= now;
  }

  async #make(createdAt: Millis): Promise<TokenKey> {
    const algorithm = { name: "ECDSA", namedCurve: "P-256" };
    const { privateKey } = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const jwk = await exportJWK(privateKey);
    const kid = await calculateJwkThumbprint(jwk);
    const { sealing, tokenTtlMs, logger } = this.#deps;
    logger.info("A new key signs access tokens", { kid });
    return keyOf({ kid, createdAt, tokenTtlMs, sealed: sealing.seal(JSON.stringify(jwk)) }, jwk);
  }

  /** Reads the file. What cannot be read is logged, and its tokens are refused. */
  async #read(): Promise<TokenKey[]> {
    const { logger, sealing } = this.#deps;
    if (!existsSync(this.#path)) return [];
    const keys: TokenKey[] = [];
    try {
      for (const stored of storedKeys(JSON.parse(readFileSync(this.#path, "utf8")))) {
        const jwk = sealing.unseal(stored.sealed);
        if (jwk === null)
          logger.warn("A key of access tokens is dropped: it was sealed with another secret", { kid: stored.kid });
        else keys.push(await keyOf(stored, JSON.parse(jwk) as JWK)); // As `#make` has written it.
      }
    } catch (cause) {
      logger.warn(`${TOKEN_KEYS_FILE} cannot be read: new keys are made, and earlier access tokens refused`, { cause });
    }
    return keys;
  }
}

/** Returns the entries of the file that have the form of a key. */
function storedKeys(value: JsonValue): StoredKey[] {
  const keys = isJsonObject(value) && Array.isArray(value["keys"]) ? value["keys"] : [];
  return keys.flatMap((key) => {
    if (!isJsonObject(key)) return [];
    const { kid, createdAt, tokenTtlMs, sealed } = key;
    const isKey =
      typeof kid === "string" &&
      typeof createdAt === "number" &&
      typeof tokenTtlMs === "number" &&
      typeof sealed === "string";
    return isKey ? [{ kid, createdAt, tokenTtlMs, sealed }] : [];
  });
}

async function keyOf(stored: StoredKey, secret: JWK): Promise<TokenKey> {
  const { d: _, ...open } = secret;
  const published = { ...open, kid: stored.kid, alg: ALGORITHM, use: "sig" };
  // Keys of this kind are imported as CryptoKey.
  const privateKey = (await importJWK(secret, ALGORITHM)) as CryptoKey;
  const publicKey = (await importJWK(published, ALGORITHM)) as CryptoKey;
  return { stored, privateKey, publicKey, published };
}
