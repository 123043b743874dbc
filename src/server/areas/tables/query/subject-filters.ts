import { matches } from "../../../../kernel/records/filter-match.ts";
import type { AnyFilter, TableRecord } from "../../../config/types.ts";
import { parseFilter, plain } from "../filters/filter.ts";
import { FILTER_CONDITIONS_MAX } from "../limits.ts";
import { compileTables, type TableModel } from "../model/model.ts";
import type { Namespace } from "../records/namespaces.ts";

type Matches = (subject: TableRecord) => boolean;

/** Filters of a config that are matched against one record at a time. */
export interface SubjectFilters {
  /** Compiles a filter on records of a declared table. Errors: 400 naming the condition that does not fit it. */
  ofTable(namespace: string, table: string, filter: AnyFilter): Matches;
  /**
   * Compiles a filter on objects other than records, such as the facts of a file. Errors: 400 for a condition that nothing could
   * meet.
   */
  ofFacts(filter: AnyFilter): Matches;
}

export function createSubjectFilters(namespaces: ReadonlyMap<string, Namespace>): SubjectFilters {
  const compiled = (model: TableModel | undefined, filter: AnyFilter): Matches => {
    if (model === undefined) throw new Error("a filter is for a table that is not declared");
    const parsed = plain(parseFilter(model, filter, { name: "filter", conditionsMax: FILTER_CONDITIONS_MAX }));
    return (subject) => matches(parsed, subject);
  };
  return {
    ofTable: (namespace, table, filter) => compiled(namespaces.get(namespace)?.tables.get(table)?.model, filter),
    // A table without a schema, as facts have no declared types.
    ofFacts: (filter) => compiled(compileTables("facts", { facts: {} }).get("facts"), filter),
  };
}
