import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { EnqueueJobOptions } from "../../config/app/index.ts";
import type { PassedJob } from "../types.ts";
import type { JobForm } from "./declared-jobs.ts";
import { chosenOptions, dataText, dueTime, requireKey } from "./entry.ts";
import type { JobStore, OnDue } from "./store.ts";

/** Prepares a job for an outbox. Errors: those of `app.jobs.enqueue`. */
export type PrepareJob = (name: string, data: unknown, options?: EnqueueJobOptions) => PassedJob;

export function createPreparing({ form, clock, ids }: { form: JobForm; clock: Clock; ids: Ids }): PrepareJob {
  return (name, data, options) => {
    const { delay, at, key } = chosenOptions(options);
    return {
      id: ids.uuid(),
      name,
      group: null,
      key: requireKey("key", key),
      dueAt: delay === undefined && at === undefined ? null : dueTime({ delay, at }, clock.now()),
      data: dataText(form(name, data)),
      secret: null,
    };
  };
}

/** Adds jobs from an outbox in one write, so that their order holds even when it fails. */
export function createPassing(deps: { store: () => JobStore; onDue: OnDue; clock: Clock }) {
  const { store, onDue, clock } = deps;
  return async (jobs: readonly PassedJob[]): Promise<void> => {
    const createdAt = clock.now();
    await store().write((tx, deltas) => {
      for (const { dueAt, ...job } of jobs) {
        store().insert(tx, deltas, { ...job, dueAt: dueAt ?? createdAt, createdAt }, onDue);
      }
      return null;
    });
  };
}
