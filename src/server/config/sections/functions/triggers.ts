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

/** A change, and one try of what it sets off. */
export interface TriggerRun {
  event: TableEvent | FileEvent | AccountEvent;
  /** The record, file or user before the change; null: it is new. */
  before: Subject | null;
  /** After the change; null: it was deleted. */
  after: Subject | null;
  by: ChangedBy;
  /** null: the table is not in a dynamic namespace, or the change is not of a table. */
  instanceId: string | null;
  /** When the change was made: ISO 8601. */
  at: string;
  app: AppAccess;
  /** The same in each try of this run. */
  id: string;
  /** Counts from 1. */
  attempt: number;
  /** Aborted after `timeout`, and when the server stops. */
  signal: AbortSignal;
  /** Adds the trigger's name and the id to each entry. */
  log: Logger;
}

const TriggerShape = Type.Object({
  on: eventSource(),
  /** About `after`, for deletes about `before`. Default: every change. */
  filter: Type.Optional(sourceFilter()),
  /** Has failed this try when it throws or rejects. */
  run: func<(run: TriggerRun) => unknown>(),
  /** Tries after the first one. Default: 5. */
  retries: Type.Optional(whole({ min: 0 })),
  /** Seconds that one try may take. Default: 60. */
  timeout: Type.Optional(seconds()),
  /** Runs at once. Runs of one record never overlap. Default: 4. */
  concurrency: Type.Optional(whole({ min: 1, max: 1_000 })),
});
export interface TriggerConfig extends Static<typeof TriggerShape> {}

export const Triggers = named(Type.Unsafe<TriggerConfig>(TriggerShape), nameProblem);
