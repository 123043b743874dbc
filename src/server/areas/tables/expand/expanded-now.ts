import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import { isPromise } from "../../../../kernel/maybe-promise.ts";
import type { TableRecord } from "../../../config/types.ts";
import { EXPANDED_PER_RECORD_MAX, IN_VALUES_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { expandRecords } from "./expand.ts";
import { parseExpand } from "./paths.ts";
import type { Readable } from "./readable.ts";
import type { RelatedRecord } from "./related-store.ts";

/** Returns the first `limit` records by id of a table that match a filter. */
export type FindRelated = (model: TableModel, filter: unknown, limit: number) => readonly TableRecord[];

/** Returns copies of the records with what `paths` names, which is found at once. Errors: those of `expand` over HTTP. */
export function expandedNow(
  model: TableModel,
  records: readonly JsonObject[],
  paths: string,
  readable: Readable,
): readonly TableRecord[] {
  const steps = parseExpand(model, paths);
  if (steps === null || records.length === 0) return records;
  const expanded = expandRecords(readable, steps, records);
  if (isPromise(expanded)) throw new Error("a synchronous query waited for its expanded records");
  return records.map((record, place) => ({ ...record, expand: expanded[place] ?? null }));
}

/** Returns the related records that `find` finds. */
export function readableBy(find: FindRelated): Readable {
  const related = (record: TableRecord): RelatedRecord => ({
    // A copy, which gets what further steps find.
    record: { ...record },
    bytes: JSON.stringify(record).length,
  });
  return {
    referredBy({ to, toColumn }, values) {
      const found = new Map<JsonValue, RelatedRecord>();
      for (let start = 0; start < values.length; start += IN_VALUES_MAX) {
        const some = values.slice(start, start + IN_VALUES_MAX);
        for (const record of find(to, [[toColumn.name, "in", some]], some.length)) {
          found.set(record[toColumn.name] ?? null, related(record));
        }
      }
      return found;
    },
    referringTo: ({ from, column }, values) =>
      new Map(
        values.map((value) => {
          const operator = column.type === "references" ? "has" : "==";
          const found = find(from, [[column.name, operator, value]], EXPANDED_PER_RECORD_MAX + 1);
          return [value, found.map(related)];
        }),
      ),
  };
}
