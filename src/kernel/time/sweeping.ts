import type { Clock } from "../clock.ts";

interface SweepingOptions {
  clock: Clock;
  /** Delay of the first call; default `intervalMs`. */
  firstMs?: number;
  intervalMs: number;
  /** Delay between calls while there is more to do, in which requests are served. */
  pauseMs: number;
  /** Runs one step of bounded size; resolves to whether there is more. `stopping` is aborted when the sweep is to end. */
  sweep(stopping: AbortSignal): Promise<boolean>;
  /** Called when a step fails. The next one runs at its time. */
  onFailure(cause: unknown): void;
}

/** Sweeps periodically, one step at a time. The returned function ends it, and resolves when no step is running. */
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

/** Returns the first rows, in their order, until they have `bytes` together: as much as a step may take. The last may exceed it. */
export function untilBytes<Sized extends { bytes: number }>(rows: readonly Sized[], bytes: number): readonly Sized[] {
  let left = bytes;
  const last = rows.findIndex((row) => {
    left -= row.bytes;
    return left <= 0;
  });
  return last === -1 ? rows : rows.slice(0, last + 1);
}
