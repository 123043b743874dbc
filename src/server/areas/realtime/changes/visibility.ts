import type { JsonObject } from "../../../../kernel/json/json.ts";
import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { ReadAccess, RecordFilter } from "../../../access/table-door.ts";
import type { Entry } from "./change-log.ts";

export type ChangeType = "added" | "modified" | "removed";

/** Decides which records a subscription shows: the read rule, and the client's filters. */
export interface View {
  access: ReadAccess;
  /** null: every record. */
  filter: RecordFilter | null;
}

/** A record that enters the view is added, one that leaves it is removed; null: it is not in the view. [RT19] */
function changeTypeFor(view: View, entry: Entry): MaybePromise<ChangeType | null> {
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
      return access.allows(record);
  }
}

/** The same for the changes of one request, in order, and in steps: one large record may take milliseconds. */
export class ChangeTypes {
  readonly #view: View;
  readonly #entries: readonly Entry[];
  readonly #types: MaybePromise<ChangeType | null>[] = [];

  constructor(view: View, entries: readonly Entry[]) {
    this.#view = view;
    this.#entries = entries;
  }

  /** Evaluates one more at least, and further ones until `isOver`. Returns whether all are evaluated. */
  advance(isOver: () => boolean): boolean {
    do {
      const entry = this.#entries[this.#types.length];
      if (entry === undefined) return true;
      this.#types.push(changeTypeFor(this.#view, entry));
    } while (this.#types.length === this.#entries.length || !isOver());
    return false;
  }

  /** Once all are evaluated. A promise only where a rule returned one. */
  get all(): MaybePromise<(ChangeType | null)[]> {
    const types = this.#types;
    return types.some((type) => isPromise(type)) ? Promise.all(types) : (types as (ChangeType | null)[]); // None is a promise.
  }
}
