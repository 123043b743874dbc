import type { Clock } from "../../kernel/clock.ts";
import type { PassedJob } from "../types.ts";
import type { JobStore, OnDue } from "./store.ts";

/** Adds jobs from an outbox in one write, so that their order holds even when it fails. */
export function createPassing(deps: { store: () => JobStore; onDue: OnDue; clock: Clock }) {
  const { store, onDue, clock } = deps;
  return async (jobs: readonly PassedJob[]): Promise<void> => {
    const createdAt = clock.now();
    await store().write((tx, deltas) => {
      for (const { dueAt, ...job } of jobs) {
        store().insert(tx, deltas, { ...job, dueAt: dueAt ?? createdAt, secret: null, createdAt, kind: "job" }, onDue);
      }
      return null;
    });
  };
}
