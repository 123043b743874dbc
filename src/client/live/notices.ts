import type { Runtime } from "../runtime.ts";
import { NOTIFY_EVERY_MS } from "./limits.ts";

/** Calls listeners of all live queries together: at once after a pause, else once in a frame. */
export interface Notices {
  /** Calls `work` soon; once, however often it is asked for. */
  add(work: () => void): void;
}

export function createNotices(runtime: Runtime): Notices {
  const due = new Set<() => void>();
  let isScheduled = false;
  let isPausing = false;

  const pause = () => {
    isPausing = true;
    runtime.after(NOTIFY_EVERY_MS, () => {
      isPausing = false;
      if (due.size > 0) run();
    });
  };
  const run = () => {
    isScheduled = false;
    const now = [...due];
    due.clear();
    pause();
    for (const work of now) work();
  };
  return {
    add(work) {
      due.add(work);
      if (isPausing || isScheduled) return;
      isScheduled = true;
      queueMicrotask(run);
    },
  };
}
