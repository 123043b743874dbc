import type { Clock } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import { PLACE_TIMEOUT_MS, PLACE_WAITING_MAX, PLACE_WAITING_PER_CLIENT_MAX } from "./limits.ts";

/** Gives a place back; more than once is as good as once. */
export type Release = () => void;

/**
 * Places for sockets that have not authenticated yet, a few for each client (`clientNetwork`). An upgrade that finds none
 * waits for one: players behind one address arrive together, and each needs its place for a round trip only.
 */
export interface PendingPlaces {
  /** Errors: 429 when too many wait, and when none becomes free in time; 408 when the request is aborted. */
  take(client: string, signal: AbortSignal): MaybePromise<Release>;
}

interface Waiter {
  give(): void;
}

interface Client {
  taken: number;
  /** In order of arrival. */
  readonly waiting: Set<Waiter>;
}

export function createPendingPlaces(clock: Clock, perClientMax: number): PendingPlaces {
  const clients = new Map<string, Client>();
  let waitingCount = 0;

  const refusal = (): AppError =>
    new AppError(429, `At most ${perClientMax} connections of one address may wait for auth`, {
      headers: { "retry-after": String(PLACE_TIMEOUT_MS / SECOND_MS) },
    });
  const releaseOnce = (name: string, client: Client): Release => {
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      // Handed on: nobody who comes in between goes first.
      for (const waiter of client.waiting) return waiter.give();
      if (--client.taken === 0) clients.delete(name);
    };
  };
  const wait = (name: string, client: Client, signal: AbortSignal): Promise<Release> =>
    new Promise((resolve, reject) => {
      const end = (): void => {
        client.waiting.delete(waiter);
        waitingCount--;
        cancel();
        signal.removeEventListener("abort", abort);
      };
      const abort = (): void => {
        end();
        reject(new AppError(408, "The client went away"));
      };
      const cancel = clock.after(PLACE_TIMEOUT_MS, () => {
        end();
        reject(refusal());
      });
      const waiter: Waiter = {
        give() {
          end();
          resolve(releaseOnce(name, client));
        },
      };
      client.waiting.add(waiter);
      waitingCount++;
      signal.addEventListener("abort", abort);
    });

  return {
    take(name, signal) {
      const client = clients.get(name) ?? { taken: 0, waiting: new Set<Waiter>() };
      if (client.taken < perClientMax) {
        client.taken++;
        clients.set(name, client);
        return releaseOnce(name, client);
      }
      if (client.waiting.size >= PLACE_WAITING_PER_CLIENT_MAX || waitingCount >= PLACE_WAITING_MAX) throw refusal();
      return wait(name, client, signal);
    },
  };
}
