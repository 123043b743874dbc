import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { RateLimit } from "../../../config/types.ts";
import { CODE_FAILURES_PER_DAY, CODE_FAILURES_WINDOW_MS, GUESS_KEYS_MAX, GUESSES_WAITING_MAX } from "../limits.ts";
import { countFailure, failuresOf } from "../statements/secrets.ts";
import type { AccountWrite } from "../store/account-file.ts";

interface Count {
  failures: number;
  underWay: number;
  endsAt: Millis;
}

export interface GuessKey {
  key: string;
  limit: RateLimit;
}

/** The outcome of a guess. */
export type Guess<T> = { isRight: true; value: T } | { isRight: false; error: AppError };

/** Owner of the guessed password or code, for the audit log. */
export interface GuessAbout {
  userId: string | null;
  /** The address that was given; null where none was. */
  email: string | null;
  way: "password" | "code" | "recovery code";
}

/** Counts wrong guesses at passwords and codes, in memory. */
export class Guesses {
  readonly #clock: Clock;
  readonly #onWrong: (about: GuessAbout) => Promise<void>;
  readonly #counts = new BoundedMap<string, Count>(GUESS_KEYS_MAX);
  readonly #waiting: (() => void)[] = [];

  /** `onWrong` writes a wrong guess down; it resolves when that is on disk. */
  constructor(clock: Clock, onWrong: (about: GuessAbout) => Promise<void> = async () => {}) {
    this.#clock = clock;
    this.#onWrong = onWrong;
  }

  /**
   * Runs a guess at a password or code unless one of its keys has failed too often within the window. Concurrent
   * guesses count as failed until they are judged, and further ones wait for them: a thousand sent together are no more
   * guesses than a thousand sent one by one. Errors: 429 with `Retry-After`; the guess's own; those of `onWrong`, which tell no more
   * than that the guess was wrong.
   */
  async attempt<T>(keys: readonly GuessKey[], guess: () => Promise<Guess<T>>, about?: GuessAbout): Promise<T> {
    while (!this.#mayGo(keys)) {
      if (this.#waiting.length >= GUESSES_WAITING_MAX) refuse(SECOND_MS);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    const mine = keys.map((key) => this.#countOf(key));
    for (const count of mine) count.underWay++;
    let error: AppError;
    try {
      const result = await guess();
      if (result.isRight) return result.value;
      for (const count of mine) count.failures++;
      error = result.error;
    } finally {
      for (const count of mine) count.underWay--;
      for (const wake of this.#waiting.splice(0)) wake();
    }
    // Judged already, so that it holds up no other guess.
    if (about !== undefined) await this.#onWrong(about);
    throw error;
  }

  /** Returns false if it must wait until the guesses under way are judged. Errors: 429. */
  #mayGo(keys: readonly GuessKey[]): boolean {
    let isFree = true;
    for (const key of keys) {
      const count = this.#countOf(key);
      if (count.failures >= key.limit.requests) refuse(count.endsAt - this.#clock.now());
      if (count.failures + count.underWay >= key.limit.requests) isFree = false;
    }
    return isFree;
  }

  #countOf(key: GuessKey): Count {
    const now = this.#clock.now();
    const found = this.#counts.get(key.key);
    const endsAt = now + key.limit.window * SECOND_MS;
    // A window that ends too late began before the clock was set back.
    const isOpen = found !== undefined && found.endsAt > now && found.endsAt <= endsAt;
    if (found !== undefined && (isOpen || found.underWay > 0)) {
      if (!isOpen) Object.assign(found, { failures: 0, endsAt });
      return found;
    }
    const fresh = { failures: 0, underWay: 0, endsAt };
    this.#counts.set(key.key, fresh);
    return fresh;
  }
}

function refuse(remainingMs: number): never {
  const retryAfterSeconds = Math.max(1, Math.ceil(remainingMs / SECOND_MS));
  throw new AppError(429, "Rate limit exceeded", { headers: { "retry-after": String(retryAfterSeconds) } });
}

/** The uses of six-digit codes. Each has its own budget: one used up with a stolen token, for instance, leaves the others. */
type CodeUse = "totp-sign-in" | "totp-manage" | "email-otp" | "phone-otp" | "phone-change";

/**
 * The wrong codes within a day. Limits per minute alone would allow guessing forever, with a chance of some percent a day; this
 * bounds the chance to some thousandths. The count is in the file, and is read in the write that checks the code: neither a
 * restart nor a race allows more guesses. [AU102]
 */
export class CodeBudget {
  /** null: not limited. */
  readonly #key: string | null;

  /** `owner`: the user's id, or the address that a code was mailed to. */
  constructor(use: CodeUse, owner: string, { isLimited }: { isLimited: boolean }) {
    this.#key = isLimited ? `${use}:${owner}` : null;
  }

  /** Returns null while guesses are left; otherwise the answer, 429 with `Retry-After`. */
  refusal({ tx, now }: AccountWrite): AppError | null {
    const found = this.#key === null ? null : failuresOf.get(tx, { key: this.#key, now });
    if (found === null || found.failures < CODE_FAILURES_PER_DAY) return null;
    // A clock that was set back does not lengthen a day.
    const remainingMs = Math.min(found.endsAt - now, CODE_FAILURES_WINDOW_MS);
    const hours = Math.ceil(remainingMs / (3_600 * SECOND_MS));
    return new AppError(
      429,
      `Too many wrong codes: codes are taken again in ${hours} h, other ways to sign in are open`,
      { headers: { "retry-after": String(Math.ceil(remainingMs / SECOND_MS)) } },
    );
  }

  /** Counts a wrong code. */
  count({ tx, now }: AccountWrite): void {
    if (this.#key !== null) countFailure.run(tx, { key: this.#key, now, endsAt: now + CODE_FAILURES_WINDOW_MS });
  }
}
