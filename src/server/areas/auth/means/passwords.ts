import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import { Scheduler } from "../../../../kernel/time/scheduler.ts";
import { PASSWORD_MAX_BYTES, passwordForm } from "../../../config/shapes/user-fields.ts";
import {
  ARGON2_MEMORY_KIB,
  ARGON2_PASSES,
  BCRYPT_COST_MAX,
  BCRYPT_COST_MIN,
  HASH_PROCESSES_MAX,
  HASHES_AT_ONCE_MAX,
  HASHES_WAITING_FOR_PROCESS,
  HASHES_WAITING_MAX,
  HASHES_WAITING_PER_SHARER_MAX,
  PBKDF2_HASH_BYTES_MAX,
  PBKDF2_HASH_BYTES_MIN,
  PBKDF2_ITERATIONS_MAX,
  PBKDF2_SALT_BYTES_MAX,
} from "../limits.ts";
import { createHashPlaces } from "./hash-places.ts";
import { BCRYPT, PBKDF2 } from "./hashing.ts";

/** Hashes run off the main thread: see `hash-places.ts`. `sharer`: a client's network, or the name of another source of work. Errors: 503 if too many wait. */
export interface Passwords {
  /** argon2id of `passwordForm`. */
  hash(password: string, sharer: string): Promise<string>;
  /** The same for a whole import, in its order; its hashes take turns with those of others. */
  hashAll(passwords: readonly string[], sharer: string): Promise<string[]>;
  /**
   * Whether the hash is of `passwordForm`, or of the password as it was given, which earlier releases and other systems hash. A
   * null hash (no such user, no password) is a wrong password, after the same work. `beganAt`: when its turn came; the time that
   * it waited before does not depend on the hash. `isOutdated`: the hash is right, and not what `hash()` makes today.
   */
  verify(
    password: string,
    hash: string | null,
    sharer: string,
  ): Promise<{ isRight: boolean; isOutdated: boolean; beganAt: Millis }>;
  /** What is wrong with an imported hash, as in "must be …"; null when it can be verified against. */
  hashProblem(text: string): string | null;
  stop(): Promise<void>;
}

const ARGON2_PREFIX = `$argon2id$v=19$m=${ARGON2_MEMORY_KIB},t=${ARGON2_PASSES},p=1$`;

export function createPasswords(clock: Clock): Passwords {
  const scheduler = new Scheduler({
    atOnce: HASHES_AT_ONCE_MAX,
    waitingMax: HASHES_WAITING_MAX,
    waitingPerCallerMax: HASHES_WAITING_PER_SHARER_MAX,
    further: { atOnce: HASH_PROCESSES_MAX, waitingMin: HASHES_WAITING_FOR_PROCESS },
    refusal: () =>
      new AppError(503, "Too many passwords are being checked, try again later", { headers: { "retry-after": "5" } }),
  });
  /** `sharer`: a client's network, or the name of another source of work. Sharers take turns. */
  const inTurn = <T>(sharer: string, work: () => Promise<T>): Promise<T> => scheduler.inTurn(work, { caller: sharer });
  const places = createHashPlaces(clock);
  // Work of the kind `hash` gives a text, of the kind `check` a boolean.
  const hashed = async (password: string): Promise<string> =>
    String(await places.run({ kind: "hash", password: passwordForm(password) }));
  const isHashOf = async (password: string, hash: string): Promise<boolean> =>
    (await places.run({ kind: "check", password, hash })) === true;
  /** The hash of an unknown password, computed at the first use. */
  let decoy: Promise<string> | null = null;

  const check = async (password: string, hash: string | null): Promise<boolean> => {
    const isTooLong = Buffer.byteLength(password) > PASSWORD_MAX_BYTES;
    if (hash !== null && password !== "" && !isTooLong) return isHashOf(password, hash);
    decoy ??= hashed(Bun.randomUUIDv7());
    await isHashOf("decoy", await decoy);
    return false;
  };

  return {
    hash: (password, sharer) => inTurn(sharer, () => hashed(password)),
    async hashAll(passwords, sharer) {
      const hashes: string[] = new Array(passwords.length);
      let next = 0;
      const work = async (): Promise<void> => {
        while (next < passwords.length) {
          const index = next++;
          hashes[index] = await inTurn(sharer, () => hashed(passwords[index] ?? ""));
        }
      };
      await Promise.all(Array.from({ length: HASHES_AT_ONCE_MAX + HASH_PROCESSES_MAX + 1 }, work));
      return hashes;
    },
    verify: (password, hash, sharer) =>
      inTurn(sharer, async () => {
        const beganAt = clock.now();
        const form = passwordForm(password);
        if (await check(form, hash))
          return { isRight: true, isOutdated: hash?.startsWith(ARGON2_PREFIX) !== true, beganAt };
        // Whether the account exists or not, so that the time does not tell it.
        const isRight = form !== password && (await check(password, hash));
        return { isRight, isOutdated: isRight, beganAt };
      }),
    hashProblem,
    stop: () => places.stop(),
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
