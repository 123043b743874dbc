import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import { Scheduler } from "../../../../kernel/time/scheduler.ts";
import { PASSWORD_MAX_BYTES, passwordForm } from "../../../config/shapes/user-fields.ts";
import type { Job } from "../../../db/processes/job.ts";
import { ProcessPool } from "../../../db/processes/pool.ts";
import {
  ARGON2_IMPORTED_LANES_MAX,
  ARGON2_IMPORTED_MAX_KIB,
  ARGON2_IMPORTED_PASSES_MAX,
  ARGON2_LANE_MIN_KIB,
  ARGON2_SALT_BYTES_MIN,
  BCRYPT_COST_MAX,
  BCRYPT_COST_MIN,
  HASH_BYTES_MAX,
  HASH_BYTES_MIN,
  HASH_PROCESS_IDLE_MS,
  HASH_PROCESSES_MAX,
  HASH_TIMEOUT_MS,
  HASHES_AT_ONCE_MAX,
  HASHES_WAITING_FOR_PROCESS,
  HASHES_WAITING_MAX,
  HASHES_WAITING_PER_SHARER_MAX,
  PBKDF2_ITERATIONS_MAX,
  SALT_BYTES_MAX,
  SCRYPT_BLOCK_SIZE_MAX,
  SCRYPT_LOGARITHM_MAX,
  SCRYPT_MAX_BYTES,
  SCRYPT_PARALLELISM_MAX,
  SHA_CRYPT_ROUNDS_MAX,
  SHA_CRYPT_ROUNDS_MIN,
} from "../limits.ts";
import { libraryPath } from "./argon2.ts";
import {
  ARGON2_FORM,
  ARGON2_PREFIX,
  BCRYPT,
  derivedKeyOf,
  type HashWork,
  hashOnThread,
  needsProcess,
} from "./hashing.ts";
import { scryptBytes, scryptOf } from "./scrypt.ts";
import { shaCryptOf } from "./sha-crypt.ts";

/** A thread finishes what a process could not. */
const notDone = (): Error => new AppError(503, "The password could not be checked, try again");
const REFUSALS: Job["refusals"] = { queueFull: notDone, waitedTooLong: notDone, ranTooLong: notDone, ended: notDone };

/**
 * Hashes passwords off the main thread: on threads of this process, and on processes of lower priority when those are taken.
 * `sharer`: a client's network, or the name of another source of work; sharers take turns. Errors of its methods: 503 if too many
 * wait.
 */
export class Passwords {
  readonly #clock: Clock;
  readonly #pool: ProcessPool;
  readonly #scheduler = new Scheduler({
    atOnce: HASHES_AT_ONCE_MAX,
    waitingMax: HASHES_WAITING_MAX,
    waitingPerCallerMax: HASHES_WAITING_PER_SHARER_MAX,
    further: { atOnce: HASH_PROCESSES_MAX, waitingMin: HASHES_WAITING_FOR_PROCESS },
    refusal: () =>
      new AppError(503, "Too many passwords are being checked, try again later", { headers: { "retry-after": "5" } }),
  });
  #onThreads = 0;
  /** The hash of an unknown password, computed at the first use. */
  #decoy: Promise<string> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#pool = new ProcessPool({
      clock,
      program: "areas/auth/means/hash-job",
      settings: null,
      processesMax: Math.max(1, HASH_PROCESSES_MAX),
      placesMax: Math.max(1, HASH_PROCESSES_MAX),
      idleMs: HASH_PROCESS_IDLE_MS,
    });
  }

  /** Returns argon2id of `passwordForm`. */
  hash(password: string, sharer: string): Promise<string> {
    return this.#scheduler.inTurn(() => this.#hash(password), { caller: sharer });
  }

  /** Hashes the passwords of a whole import, in its order; they take turns with those of others. */
  async hashAll(passwords: readonly string[], sharer: string): Promise<string[]> {
    const hashes: string[] = new Array(passwords.length);
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < passwords.length) {
        const index = next++;
        hashes[index] = await this.hash(passwords[index] ?? "", sharer);
      }
    };
    await Promise.all(Array.from({ length: HASHES_AT_ONCE_MAX + HASH_PROCESSES_MAX + 1 }, work));
    return hashes;
  }

  /**
   * Returns whether the hash is of `passwordForm`, or of the password as it was given, which earlier releases and other systems hash.
   * A null hash (no such user, no password) is a wrong password, after the same work. `beganAt`: when its turn came; the time that
   * it waited before does not depend on the hash. `isOutdated`: the hash is right, and not what `hash()` makes today.
   */
  verify(
    password: string,
    hash: string | null,
    sharer: string,
  ): Promise<{ isRight: boolean; isOutdated: boolean; beganAt: Millis }> {
    const work = async () => {
      const beganAt = this.#clock.now();
      const form = passwordForm(password);
      if (await this.#check(form, hash)) {
        return { isRight: true, isOutdated: hash?.startsWith(ARGON2_PREFIX) !== true, beganAt };
      }
      // Whether the account exists or not, so that the time does not tell it.
      const isRight = form !== password && (await this.#check(password, hash));
      return { isRight, isOutdated: isRight, beganAt };
    };
    return this.#scheduler.inTurn(work, { caller: sharer });
  }

  stop(): Promise<void> {
    return this.#pool.stop();
  }

  async #check(password: string, hash: string | null): Promise<boolean> {
    const isTooLong = Buffer.byteLength(password) > PASSWORD_MAX_BYTES;
    if (hash !== null && password !== "" && !isTooLong) return this.#isHashOf(password, hash);
    this.#decoy ??= this.#hash(Bun.randomUUIDv7());
    await this.#isHashOf("decoy", await this.#decoy);
    return false;
  }

  // Work of the kind `hash` gives a text, of the kind `check` a boolean.
  async #hash(password: string): Promise<string> {
    const argon2 = await libraryPath();
    return String(await this.#run({ kind: "hash", argon2, password: passwordForm(password) }));
  }

  async #isHashOf(password: string, hash: string): Promise<boolean> {
    const argon2 = await libraryPath();
    return (await this.#run({ kind: "check", argon2, password, hash })) === true;
  }

  async #run(work: HashWork): Promise<string | boolean> {
    if (this.#onThreads < HASHES_AT_ONCE_MAX && !needsProcess(work)) return this.#onThread(work);
    const job: Job = {
      request: work,
      caller: "hashes",
      places: 1,
      waitMs: HASH_TIMEOUT_MS,
      runMs: HASH_TIMEOUT_MS,
      signals: [],
      refusals: REFUSALS,
      failed: notDone,
    };
    // The program answers with what `hashNow` returns.
    return this.#pool.run(job).catch(() => this.#onThread(work)) as Promise<string | boolean>;
  }

  async #onThread(work: HashWork): Promise<string | boolean> {
    this.#onThreads++;
    try {
      return await hashOnThread(work);
    } finally {
      this.#onThreads--;
    }
  }
}

const HASH_FORMS =
  "bcrypt ($2a$, $2b$, $2y$), argon2 ($argon2id$, $argon2i$), scrypt ($scrypt$, $firebase-scrypt$), SHA-crypt ($5$, $6$), pbkdf2_sha256$ or pbkdf2:sha256:ITERATIONS:BASE64_SALT:BASE64_HASH";

/** Returns what is wrong with an imported hash, as in "must be …"; null when passwords can be checked with it. */
export function hashProblem(text: string): string | null {
  const outside = (what: string, min: number, value: number, max: number): string | null =>
    value >= min && value <= max ? null : `must have ${what} from ${min} to ${max}, got ${value}`;
  const cost = BCRYPT.exec(text)?.[1];
  if (cost !== undefined) return outside("a bcrypt cost", BCRYPT_COST_MIN, Number(cost), BCRYPT_COST_MAX);
  const argon2 = ARGON2_FORM.exec(text);
  if (argon2 !== null) {
    const [, memory, passes, lanes, salt = "", hash = ""] = argon2;
    return (
      outside("an argon2 memory (KiB)", ARGON2_LANE_MIN_KIB * Number(lanes), Number(memory), ARGON2_IMPORTED_MAX_KIB) ??
      outside("argon2 passes", 1, Number(passes), ARGON2_IMPORTED_PASSES_MAX) ??
      outside("argon2 lanes", 1, Number(lanes), ARGON2_IMPORTED_LANES_MAX) ??
      outside(
        "a number of salt bytes",
        ARGON2_SALT_BYTES_MIN,
        Buffer.from(salt, "base64").byteLength,
        SALT_BYTES_MAX,
      ) ??
      outside("a number of hash bytes", HASH_BYTES_MIN, Buffer.from(hash, "base64").byteLength, HASH_BYTES_MAX)
    );
  }
  const crypt = shaCryptOf(text);
  if (crypt !== null) return outside("SHA-crypt rounds", SHA_CRYPT_ROUNDS_MIN, crypt.rounds, SHA_CRYPT_ROUNDS_MAX);
  const scrypt = scryptOf(text);
  if (scrypt !== null) {
    return (
      outside("a scrypt logarithm", 1, scrypt.logarithm, SCRYPT_LOGARITHM_MAX) ??
      outside("a scrypt block size", 1, scrypt.blockSize, SCRYPT_BLOCK_SIZE_MAX) ??
      outside("scrypt bytes of memory", 1, scryptBytes(scrypt), SCRYPT_MAX_BYTES) ??
      outside("a scrypt parallelism", 1, scrypt.parallelism, SCRYPT_PARALLELISM_MAX) ??
      outside("a number of salt bytes", 1, scrypt.salt.byteLength, SALT_BYTES_MAX) ??
      outside("a number of hash bytes", HASH_BYTES_MIN, scrypt.expected.byteLength, HASH_BYTES_MAX)
    );
  }
  const derived = derivedKeyOf(text);
  if (derived === null) {
    return `must be ${HASH_FORMS}`;
  }
  return (
    outside("PBKDF2 iterations", 1, derived.iterations, PBKDF2_ITERATIONS_MAX) ??
    outside("a number of salt bytes", 1, derived.salt.byteLength, SALT_BYTES_MAX) ??
    outside("a number of hash bytes", HASH_BYTES_MIN, derived.expected.byteLength, HASH_BYTES_MAX)
  );
}
