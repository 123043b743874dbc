import { pbkdf2 } from "node:crypto";
import { promisify } from "node:util";
import { PASSWORD_MAX_BYTES } from "../../access/limits.ts";
import type { Clock, Millis } from "../../kernel/clock.ts";
import {
  ARGON2_MEMORY_KIB,
  ARGON2_PASSES,
  BCRYPT_COST_MAX,
  BCRYPT_COST_MIN,
  BCRYPT_MAX_BYTES,
  HASHES_AT_ONCE_MAX,
  HASHES_WAITING_MAX,
  HASHES_WAITING_PER_SHARER_MAX,
  PBKDF2_HASH_BYTES_MAX,
  PBKDF2_HASH_BYTES_MIN,
  PBKDF2_ITERATIONS_MAX,
  PBKDF2_SALT_BYTES_MAX,
} from "../limits.ts";
import { equalsConstantTime } from "../sealing.ts";
import { createTurns } from "./hash-turns.ts";

/** Hashes run off the main thread. `sharer`: see `hash-turns.ts`. Errors: 503 if too many wait. */
export interface Passwords {
  /** argon2id. */
  hash(password: string, sharer: string): Promise<string>;
  /** The same for a whole import, in its order; its hashes take turns with those of others. */
  hashAll(passwords: readonly string[], sharer: string): Promise<string[]>;
  /**
   * A null hash (no such user, no password) is a wrong password, after the same work. `beganAt`: when its turn came; the time
   * that it waited before does not depend on the hash.
   */
  verify(password: string, hash: string | null, sharer: string): Promise<{ isRight: boolean; beganAt: Millis }>;
  /** Whether a hash is not what `hash()` makes today. */
  isOutdated(hash: string): boolean;
  /** What is wrong with an imported hash, as in "must be …"; null when it can be verified against. */
  hashProblem(text: string): string | null;
}

const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
const PBKDF2 = /^pbkdf2:sha256:(\d+):([A-Za-z0-9+/_-]+={0,2}):([A-Za-z0-9+/_-]+={0,2})$/;
const ARGON2_PREFIX = `$argon2id$v=19$m=${ARGON2_MEMORY_KIB},t=${ARGON2_PASSES},p=1$`;

const deriveKey = promisify(pbkdf2);

export function createPasswords(clock: Clock): Passwords {
  const inTurn = createTurns({
    atOnceMax: HASHES_AT_ONCE_MAX,
    waitingMax: HASHES_WAITING_MAX,
    waitingPerSharerMax: HASHES_WAITING_PER_SHARER_MAX,
  });
  const hashNow = (password: string) =>
    Bun.password.hash(password, { algorithm: "argon2id", memoryCost: ARGON2_MEMORY_KIB, timeCost: ARGON2_PASSES });
  /** The hash of an unknown password, computed at the first use. */
  let decoy: Promise<string> | null = null;

  const check = async (password: string, hash: string | null): Promise<boolean> => {
    const isTooLong = Buffer.byteLength(password) > PASSWORD_MAX_BYTES;
    if (hash === null || password === "" || isTooLong) {
      decoy ??= hashNow(Bun.randomUUIDv7());
      await Bun.password.verify("decoy", await decoy);
      return false;
    }
    if (PBKDF2.test(hash)) return checkPbkdf2(password, hash);
    if (BCRYPT.test(hash)) return Bun.password.verify(Buffer.from(password).subarray(0, BCRYPT_MAX_BYTES), hash);
    return Bun.password.verify(password, hash);
  };

  return {
    hash: (password, sharer) => inTurn(sharer, () => hashNow(password)),
    async hashAll(passwords, sharer) {
      const hashes: string[] = new Array(passwords.length);
      let next = 0;
      const work = async (): Promise<void> => {
        while (next < passwords.length) {
          const index = next++;
          hashes[index] = await inTurn(sharer, () => hashNow(passwords[index] ?? ""));
        }
      };
      await Promise.all(Array.from({ length: HASHES_AT_ONCE_MAX }, work));
      return hashes;
    },
    verify: (password, hash, sharer) =>
      inTurn(sharer, async () => {
        const beganAt = clock.now();
        return { isRight: await check(password, hash), beganAt };
      }),
    isOutdated: (hash) => !hash.startsWith(ARGON2_PREFIX),
    hashProblem,
  };
}

function hashProblem(text: string): string | null {
  const outside = (what: string, min: number, value: number, max: number): string | null =>
    value >= min && value <= max ? null : `must have ${what} from ${min} to ${max}, got ${value}`;
  const bytesOf = (base64: string) => Buffer.from(base64, "base64").byteLength;
  const cost = BCRYPT.exec(text)?.[1];
  if (cost !== undefined) return outside("a bcrypt cost", BCRYPT_COST_MIN, Number(cost), BCRYPT_COST_MAX);
  const [, iterations, salt, hash] = PBKDF2.exec(text) ?? [];
  if (iterations === undefined || salt === undefined || hash === undefined) {
    return "must be bcrypt ($2a$, $2b$, $2y$) or pbkdf2:sha256:ITERATIONS:BASE64_SALT:BASE64_HASH";
  }
  return (
    outside("PBKDF2 iterations", 1, Number(iterations), PBKDF2_ITERATIONS_MAX) ??
    outside("a number of salt bytes", 1, bytesOf(salt), PBKDF2_SALT_BYTES_MAX) ??
    outside("a number of hash bytes", PBKDF2_HASH_BYTES_MIN, bytesOf(hash), PBKDF2_HASH_BYTES_MAX)
  );
}

async function checkPbkdf2(password: string, encoded: string): Promise<boolean> {
  const [, iterations = "", salt = "", hash = ""] = PBKDF2.exec(encoded) ?? [];
  const expected = Buffer.from(hash, "base64");
  const actual = await deriveKey(
    password,
    Buffer.from(salt, "base64"),
    Number(iterations),
    expected.byteLength,
    "sha256",
  );
  return equalsConstantTime(actual, expected);
}
