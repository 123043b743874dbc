import { ownValue } from "../../../../kernel/json/json.ts";
import { instantOf, isIsoDateTime } from "../../../../kernel/time/iso-datetime.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { TableModel } from "./model.ts";

/**
 * Returns a record, or changes of one, with its instants as they are stored; `record` itself where they are. A text that is no
 * instant stays, for the validator. [TB681]
 */
export function withInstants({ datetimes }: Pick<TableModel, "datetimes">, record: TableRecord): TableRecord {
  let next = record;
  for (const name of datetimes) {
    const text = ownValue(record, name);
    const instant = typeof text === "string" ? instantOf(text) : null;
    if (instant === null || instant === text) continue;
    if (next === record) next = { ...record };
    next[name] = instant;
  }
  return next;
}

/**
 * Returns the fields whose texts may be values of 0.2 that were left as they are, with these texts: they have no offset, or are another
 * form of the instant that another record has. [TB684]
 */
export function formerTexts({ datetimes }: TableModel, changes: TableRecord): ReadonlyMap<string, string> {
  let found: Map<string, string> | null = null;
  for (const name of datetimes) {
    const text = ownValue(changes, name);
    if (typeof text !== "string" || instantOf(text) === text || !isIsoDateTime(text)) continue;
    found ??= new Map();
    found.set(name, text);
  }
  return found ?? NONE;
}

const NONE: ReadonlyMap<string, string> = new Map();
