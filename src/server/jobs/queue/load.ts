import type { Millis } from "../../../kernel/clock.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { NameCounts } from "../types.ts";
import type { JobStore } from "./store.ts";

/** Figures for the metrics, by job name. */
export type JobsLoad = readonly {
  name: string;
  waiting: number;
  running: number;
  /** Jobs that have failed, including those before this start. */
  failedTotal: number;
  /** Time for which the earliest due job has been due; 0 if none is. */
  oldestWaitingSeconds: number;
}[];

/** Reads the counts, or none when jobs.db has failed: the other metrics must not be missing then. */
function countsOf(store: JobStore): NameCounts[] {
  try {
    store.file.assertReadable();
  } catch {
    return [];
  }
  return store.counts();
}

export function loadOf(store: JobStore | null, now: Millis): JobsLoad {
  if (store === null) return [];
  return countsOf(store).map(({ name, waiting, running, failedTotal }) => {
    const dueAt = waiting === 0 ? null : store.nextDue(store.file, name);
    const oldestWaitingSeconds = dueAt === null ? 0 : Math.max(0, now - dueAt) / SECOND_MS;
    return { name, waiting, running, failedTotal, oldestWaitingSeconds };
  });
}
