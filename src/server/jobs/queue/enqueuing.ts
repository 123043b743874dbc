import { AppError } from "../../../kernel/errors.ts";
import { JOBS_PER_WRITE_MAX, UNWRITTEN_MAX } from "../limits.ts";
import type { NewJob } from "./entry.ts";
import type { JobStore, OnDue } from "./store.ts";

interface Pending {
  job: NewJob;
  resolve: (id: string) => void;
  reject: (cause: unknown) => void;
}

/**
 * Creates a function that adds jobs, batching those of one turn of the event loop into one write. The promise resolves when the job
 * is on disk.
 */
export function createEnqueuing(store: () => JobStore, onDue: OnDue): (job: NewJob) => Promise<string> {
  let pending: Pending[] = [];
  /** Jobs whose write has not been synced. */
  let unwritten = 0;

  const writeSome = (): void => {
    let taken: Pending[] = [];
    const written = store().write((tx, deltas) => {
      taken = pending.splice(0, JOBS_PER_WRITE_MAX);
      // Scheduled first, so that one write follows the other even when this one throws.
      if (pending.length > 0) writeSome();
      return taken.map(({ job }) => store().insert(tx, deltas, job, onDue));
    });
    const failed = (cause: unknown): void => {
      // A write that never ran has taken nothing: its jobs fail with it, since no other write is queued for them.
      const lost = taken.length > 0 ? taken : pending.splice(0);
      unwritten -= lost.length;
      for (const { reject } of lost) reject(cause);
    };
    written.then((ids) => {
      unwritten -= taken.length;
      for (const [index, { job, resolve }] of taken.entries()) resolve(ids[index] ?? job.id);
    }, failed);
  };

  return (job) => {
    if (unwritten >= UNWRITTEN_MAX) {
      return Promise.reject(new AppError(503, `Too many jobs wait to be written (at most ${UNWRITTEN_MAX})`));
    }
    return new Promise((resolve, reject) => {
      pending.push({ job, resolve, reject });
      unwritten += 1;
      if (pending.length > 1) return;
      try {
        writeSome();
      } catch (cause) {
        // jobs.db could not be opened.
        pending = [];
        unwritten -= 1;
        reject(cause);
      }
    });
  };
}
