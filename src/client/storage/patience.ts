import type { ClientContext } from "../context.ts";
import { listen } from "../listeners.ts";
import { jittered, pause } from "../runtime.ts";
import { isPassing, PlatformError, statusError } from "../transport/errors.ts";
import { FAILURES_MAX, FIRST_WAIT_MS, LONGEST_WAIT_MS } from "./limits.ts";

const isTriedAgain = (error: unknown): error is PlatformError => error instanceof PlatformError && isPassing(error);

/** Resolves when the browser says that it is online, or after `ms`. */
async function untilOnline({ runtime }: ClientContext, ms: number, signal: AbortSignal): Promise<void> {
  const back = new AbortController();
  const wake = () => back.abort();
  const ends = [listen(globalThis, "online", wake), listen(signal, "abort", wake)];
  await pause(runtime, ms, back.signal).catch(() => {});
  for (const end of ends) end();
}

/** What the requests of one upload share: a success of one means that the others may go on trying. */
export interface Patience {
  /** Runs `work` until it succeeds. Errors: what does not pass; that another user has signed in; the last error after ten failures in a row; the signal's reason. */
  run<T>(work: () => Promise<T>): Promise<T>;
}

export function createPatience(context: ClientContext, signal: AbortSignal): Patience {
  let successes = 0;
  const { transport } = context;
  const userId = transport.userId();
  return {
    async run(work) {
      let seen = successes;
      for (let failures = 0; ; ) {
        signal.throwIfAborted();
        // What one user began is not stored as another one's.
        if (transport.userId() !== userId) throw statusError(401, "Another user");
        try {
          const result = await work();
          successes++;
          return result;
        } catch (error) {
          signal.throwIfAborted();
          if (!isTriedAgain(error)) throw error;
          if (successes > seen) failures = 0;
          seen = successes;
          // Without a network nothing is tried in vain.
          if (globalThis.navigator?.onLine !== false && ++failures >= FAILURES_MAX) throw error;
          const longMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
          const waitMs = jittered(context.runtime, longMs);
          await untilOnline(context, Math.max(waitMs, (error.retryAfter ?? 0) * 1000), signal);
        }
      }
    },
  };
}
