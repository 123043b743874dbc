import { unreachable } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { ReadAccess, RecordFilter } from "../../../access/table-door.ts";
import { EVENTS_DATA_MAX_BYTES } from "../limits.ts";
import type { Entry } from "./change-log.ts";

export type ChangeType = "added" | "modified" | "removed";

/** Read rule and client filters, which decide the records that a subscription shows. */
export interface Shown {
  access: ReadAccess;
  /** Client filters; null shows every record. */
  filter: RecordFilter | null;
}

/**
 * Returns `added` for a record that enters the view, `removed` for one that leaves it, or null when it is not in the view. [RT19]
 */
function changeTypeFor(view: Shown, entry: Entry): MaybePromise<ChangeType | null> {
  const { before, after } = entry.change;
  // Nothing that a record shows has changed.
  if (before !== null && before === after) return null;
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

function isSeen(view: Shown, record: JsonObject | null): MaybePromise<boolean> {
  if (record === null || view.filter?.matches(record) === false) return false;
  const { access } = view;
  switch (access.kind) {
    case "all":
      return true;
    case "filter":
      return access.filter.matches(record);
    case "record":
      return access.allows(record);
    default:
      return unreachable(access);
  }
}

/** Evaluates the changes of one request in order, in steps: one large record may take milliseconds. */
export class ChangeTypes {
  readonly #view: Shown;
  readonly #entries: readonly Entry[];
  readonly #types: MaybePromise<ChangeType | null>[] = [];

  constructor(view: Shown, entries: readonly Entry[]) {
    this.#view = view;
    this.#entries = entries;
  }

  /** Evaluates at least one more change, and further ones until `isOver`. Returns whether all are evaluated. */
  advance(isOver: () => boolean): boolean {
    do {
      const entry = this.#entries[this.#types.length];
      if (entry === undefined) return true;
      this.#types.push(changeTypeFor(this.#view, entry));
    } while (this.#types.length === this.#entries.length || !isOver());
    return false;
  }

  /** Types of the changes, once all are evaluated. A promise only when a rule returned one. */
  get all(): MaybePromise<(ChangeType | null)[]> {
    const types = this.#types;
    return types.some((type) => isPromise(type)) ? Promise.all(types) : (types as (ChangeType | null)[]); // Checked: none is a promise.
  }
}

/**
 * Returns the messages for one request's changes on a channel: one per change, or a single one from `batchThreshold` on. Records
 * are JSON already. Those that are too large, or beyond EVENTS_DATA_MAX_BYTES together, are left out and marked. [RT18, RT100]
 */
export function encodeChanges(
  channel: { name: string; table: string; feed: string | null },
  entries: readonly Entry[],
  types: readonly (ChangeType | null)[],
  batchThreshold: number,
): string[] {
  const feed = channel.feed === null ? "" : `,"feed":${JSON.stringify(channel.feed)}`;
  const about = `"channel":${JSON.stringify(channel.name)}${feed}`;
  const head = `{"type":"db_change",${about},"table":${JSON.stringify(channel.table)}`;
  const messages: string[] = [];
  let dataLeft = EVENTS_DATA_MAX_BYTES;
  for (const [index, entry] of entries.entries()) {
    const type = types[index] ?? null;
    if (type === null) continue;
    const text = type === "removed" ? "null" : entry.text;
    const bytes = text === null ? Number.POSITIVE_INFINITY : Buffer.byteLength(text);
    const isTruncated = bytes > dataLeft;
    if (!isTruncated) dataLeft -= bytes;
    const data = isTruncated ? `null,"truncated":true` : text;
    messages.push(
      `${head},"changeType":"${type}","docId":${JSON.stringify(entry.change.id)},"data":${data},"timestamp":"${entry.timestamp}","seq":${entry.seq}}`,
    );
  }
  if (messages.length < batchThreshold) return messages;
  const all = messages.join(",");
  return [`{"type":"batch_changes",${about},"changes":[${all}],"total":${messages.length}}`];
}
