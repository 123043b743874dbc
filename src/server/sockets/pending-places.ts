import type { Clock } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import { PLACE_TIMEOUT_MS, PLACE_WAITING_MAX, PLACE_WAITING_PER_CLIENT_MAX } from "./limits.ts";

/** Releases a place; further calls have no effect. */
export type Release = () => void;

type Waiter = () => void;

interface Client {
  taken: number;
  /** Callbacks of waiting upgrades, in order of arrival. Each takes a place. */
  readonly waiting: Set<Waiter>;
}

/**
 * Places for unauthenticated sockets, a few per client network (`clientNetwork`). An upgrade that finds none waits for one:
 * players behind one address arrive together, and each needs its place for a round trip only.
 */
export class PendingPlaces {
  readonly #clock: Clock;
  readonly #perClientMax: number;
  readonly #clients = new Map<string, Client>();
  #waitingCount = 0;

  constructor(clock: Clock, perClientMax: number) {
    this.#clock = clock;
    this.#perClientMax = perClientMax;
  }

  /**
   * Takes a place, at once or when one becomes free. Errors: 429 when too many wait, or none becomes free in time; 408 when the
   * request is aborted.
   */
  take(name: string, signal: AbortSignal): MaybePromise<Release> {
    const client = this.#clients.get(name) ?? { taken: 0, waiting: new Set<Waiter>() };
    if (client.taken < this.#perClientMax) {
      client.taken++;
      this.#clients.set(name, client);
      return this.#releaseOnce(name, client);
    }
    if (client.waiting.size >= PLACE_WAITING_PER_CLIENT_MAX || this.#waitingCount >= PLACE_WAITING_MAX) {
      throw this.#refusal();
    }
    return this.#wait(name, client, signal);
  }

  #refusal(): AppError {
    return new AppError(429, `At most ${this.#perClientMax} connections of one address may wait for auth`, {
      headers: { "retry-after": String(PLACE_TIMEOUT_MS / SECOND_MS) },
    });
  }

  #releaseOnce(name: string, client: Client): Release {
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      // Handed on directly, so that a later upgrade cannot overtake.
      for (const give of client.waiting) return give();
      if (--client.taken === 0) this.#clients.delete(name);
    };
  }

  #wait(name: string, client: Client, signal: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        client.waiting.delete(give);
        this.#waitingCount--;
        cancel();
        signal.removeEventListener("abort", abort);
      };
      const give = (): void => {
        end();
        resolve(this.#releaseOnce(name, client));
      };
      const abort = (): void => {
        end();
        reject(new AppError(408, "The client went away"));
      };
      const cancel = this.#clock.after(PLACE_TIMEOUT_MS, () => {
        end();
        reject(this.#refusal());
      });
      client.waiting.add(give);
      this.#waitingCount++;
      signal.addEventListener("abort", abort);
    });
  }
}
