import { type Static, Type } from "typebox";
import type { Logger } from "../../../../kernel/logger.ts";
import type { AppAccess } from "../../app/index.ts";
import { nameProblem } from "../../shape/names.ts";
import { func, named, seconds, whole } from "../../shape/schema.ts";
import {
  type AccountEvent,
  type ChangedBy,
  eventSource,
  type FileEvent,
  type Subject,
  sourceFilter,
  type TableEvent,
} from "./sources.ts";

/** A change, and one attempt of the trigger. */
export interface TriggerRun {
  event: TableEvent | FileEvent | AccountEvent;
  /** The record, file or user before the change; null: it is new. */
  before: Subject | null;
  /** The record, file or user after the change; null: it was deleted. */
  after: Subject | null;
  by: ChangedBy;
  /** The instance; null: the table is not in a dynamic namespace, or the change is not of a table. */
  instanceId: string | null;
  /** The time of the change: ISO 8601. */
  at: string;
  app: AppAccess;
  /** The id of the run, equal in each attempt. */
  id: string;
  /** The attempt, from 1. */
  attempt: number;
  /** Aborted after `timeout`, and when the server stops. */
  signal: AbortSignal;
  /** A logger that adds the trigger's name and the id to each entry. */
  log: Logger;
}

const TriggerShape = Type.Object({
  on: eventSource(),
  /** A filter on `after`, for deletes on `before`. Default: every change. */
  filter: Type.Optional(sourceFilter()),
  /** Runs the trigger; the attempt fails when this throws or rejects. */
  run: func<(run: TriggerRun) => unknown>(),
  /** Retries. Default: 5. */
  retries: Type.Optional(whole({ min: 0 })),
  /** The timeout of one attempt in seconds. Default: 60. */
  timeout: Type.Optional(seconds()),
  /** Concurrent runs. Runs of one record never overlap. Default: 4. */
  concurrency: Type.Optional(whole({ min: 1, max: 1_000 })),
});
export interface TriggerConfig extends Static<typeof TriggerShape> {}

export const Triggers = named(Type.Unsafe<TriggerConfig>(TriggerShape), nameProblem);
