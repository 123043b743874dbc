import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { RateLimit } from "../../../config/types.ts";
import { GUESS_KEYS_MAX, GUESSES_WAITING_MAX } from "../limits.ts";

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

export interface Guesses {
  /**
   * Runs a guess at a password or code unless one of its keys has failed too often within the window. Concurrent
   * guesses count as failed until they are judged, and further ones wait for them: a thousand sent together are no more
   * guesses than a thousand sent one by one. Errors: 429 with `Retry-After`; the guess's own.
   */
  attempt<T>(keys: readonly GuessKey[], guess: () => Promise<Guess<T>>, about?: GuessAbout): Promise<T>;
}

/** For the audit log: whose password or code was guessed. */
export interface GuessAbout {
  userId: string | null;
  /** The address that was given; null where none was. */
  email: string | null;
  way: "password" | "code" | "recovery code";
}

/** `onWrong` is called for each wrong guess. */
export function createGuesses(clock: Clock, onWrong: (about: GuessAbout) => void = () => {}): Guesses {
  const counts = new BoundedMap<string, Count>(GUESS_KEYS_MAX);
  const waiting: (() => void)[] = [];

  const countOf = (key: GuessKey): Count => {
    const now = clock.now();
    const found = counts.get(key.key);
    const endsAt = now + key.limit.window * SECOND_MS;
    // A window that ends too late began before the clock was set back.
    const isOpen = found !== undefined && found.endsAt > now && found.endsAt <= endsAt;
    if (found !== undefined && (isOpen || found.underWay > 0)) {
      if (!isOpen) Object.assign(found, { failures: 0, endsAt });
      return found;
    }
    const fresh = { failures: 0, underWay: 0, endsAt };
    counts.set(key.key, fresh);
    return fresh;
  };

  /** false: it must wait until the guesses under way are judged. Errors: 429. */
  const mayGo = (keys: readonly GuessKey[]): boolean => {
    let isFree = true;
    for (const key of keys) {
      const count = countOf(key);
      if (count.failures >= key.limit.requests) refuse(count.endsAt - clock.now());
      if (count.failures + count.underWay >= key.limit.requests) isFree = false;
    }
    return isFree;
  };

  return {
    async attempt<T>(keys: readonly GuessKey[], guess: () => Promise<Guess<T>>, about?: GuessAbout): Promise<T> {
      while (!mayGo(keys)) {
        if (waiting.length >= GUESSES_WAITING_MAX) refuse(SECOND_MS);
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      const mine = keys.map(countOf);
      for (const count of mine) count.underWay++;
      try {
        const result = await guess();
        if (result.isRight) return result.value;
        for (const count of mine) count.failures++;
        if (about !== undefined) onWrong(about);
        throw result.error;
      } finally {
        for (const count of mine) count.underWay--;
        for (const wake of waiting.splice(0)) wake();
      }
    },
  };
}

function refuse(remainingMs: number): never {
  const retryAfterSeconds = Math.max(1, Math.ceil(remainingMs / SECOND_MS));
  throw new AppError(429, "Rate limit exceeded", { headers: { "retry-after": String(retryAfterSeconds) } });
}
