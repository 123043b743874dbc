import type { ReadAccess, RecordFilter } from "../../access/table-door.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Entry } from "./change-log.ts";

export type ChangeType = "added" | "modified" | "removed";

/** What decides which records one sees: the read rule, and the filters one asked for. */
export interface View {
  access: ReadAccess;
  /** null: every record. */
  filter: RecordFilter | null;
}

/**
 * What a change is to those who look through this view: a record that comes into it is added, one that leaves it is
 * removed; null when it was never in it. Decisions 10.
 */
export function changeTypeFor(view: View, entry: Entry): MaybePromise<ChangeType | null> {
  const { before, after } = entry.change;
  if (view.access.kind === "all" && view.filter === null) return changeType(before !== null, after !== null);
  const wasSeen = isSeen(view, before);
  const isSeenNow = isSeen(view, after);
  if (isPromise(wasSeen) || isPromise(isSeenNow)) {
    return Promise.all([wasSeen, isSeenNow]).then(([was, is]) => changeType(was, is));
  }
  return changeType(wasSeen, isSeenNow);
}

function changeType(was: boolean, is: boolean): ChangeType | null {
  if (was) return is ? "modified" : "removed";
  return is ? "added" : null;
}

function isSeen(view: View, record: JsonObject | null): MaybePromise<boolean> {
  if (record === null || view.filter?.matches(record) === false) return false;
  const { access } = view;
  switch (access.kind) {
    case "all":
      return true;
    case "filter":
      return access.filter.matches(record);
    case "record":
      // A copy: what a rule does to its argument must not reach other subscribers.
      return access.allows({ ...record });
  }
}

/** The same for the changes of one request, in order. Waits only where a rule does. */
export function changeTypesFor(view: View, entries: readonly Entry[]): MaybePromise<(ChangeType | null)[]> {
  const types = entries.map((entry) => changeTypeFor(view, entry));
  return types.some((type) => isPromise(type)) ? Promise.all(types) : (types as (ChangeType | null)[]); // none is a promise
}
