import type { Clock } from "./clock.ts";

interface SweepingOptions {
  clock: Clock;
  /** Before the first call; `intervalMs` by default. */
  firstMs?: number;
  intervalMs: number;
  /** Between calls while there is more to do, so that others get their turn. */
  pauseMs: number;
  /** One step of bounded size; resolves to whether there is more. `stopping` fires when nobody waits for it any more. */
  sweep(stopping: AbortSignal): Promise<boolean>;
  /** A step failed, and the next one comes at its time. */
  onFailure(cause: unknown): void;
}

/** Clears away from time to time, one step at a time. The function returned ends it, and resolves when no step is under way. */
export function startSweeping(options: SweepingOptions): () => Promise<void> {
  const { clock, intervalMs, pauseMs } = options;
  const stopping = new AbortController();
  let step: Promise<void> = Promise.resolve();

  const run = (): void => {
    step = options
      .sweep(stopping.signal)
      .catch((cause: unknown) => {
        if (!stopping.signal.aborted) options.onFailure(cause);
        return false;
      })
      .then((isMore) => {
        if (!stopping.signal.aborted) cancel = clock.after(isMore ? pauseMs : intervalMs, run);
      });
  };
  let cancel = clock.after(options.firstMs ?? intervalMs, run);

  return () => {
    stopping.abort();
    cancel();
    return step;
  };
}
