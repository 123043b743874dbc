import type { ReadAccess, RecordFilter } from "../../access/table-door.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Entry } from "./change-log.ts";

export type ChangeType = "added" | "modified" | "removed";

/** Decides which records a subscription shows: the read rule, and the client's filters. */
export interface View {
  access: ReadAccess;
  /** null: every record. */
  filter: RecordFilter | null;
}

/** A record that enters the view is added, one that leaves it is removed; null: it is not in the view. [RT19] */
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
      // A copy: a rule that changes its argument must not affect other subscribers.
      return access.allows({ ...record });
  }
}

/** The same for the changes of one request, in order. A promise only where a rule returns one. */
export function changeTypesFor(view: View, entries: readonly Entry[]): MaybePromise<(ChangeType | null)[]> {
  const types = entries.map((entry) => changeTypeFor(view, entry));
  return types.some((type) => isPromise(type)) ? Promise.all(types) : (types as (ChangeType | null)[]); // None is a promise.
}
