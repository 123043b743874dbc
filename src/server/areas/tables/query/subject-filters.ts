import { type MatchFilter, matches } from "../../../../kernel/records/filter-match.ts";
import type { AnyFilter, TableRecord } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import { hasRelations, type ParsedFilter, parseFilter, plain } from "../filters/filter.ts";
import { FILTER_CONDITIONS_MAX } from "../limits.ts";
import type { RuleScope } from "../lookups/calls.ts";
import type { Queries } from "../lookups/lookup-source.ts";
import { LookupMistake, singleOf } from "../lookups/table-lookup.ts";
import { compileTables, type TableModel } from "../model/model.ts";
import type { Namespace, Table } from "../records/namespaces.ts";
import { settled } from "../rules/relations.ts";

type Matches = (subject: TableRecord, tx: Transaction) => boolean;

/** Filters of a config that are matched against one record at a time. */
export function createSubjectFilters(namespaces: ReadonlyMap<string, Namespace>) {
  const parsed = (model: TableModel | undefined, filter: AnyFilter, takesRelations: boolean): ParsedFilter => {
    if (model === undefined) throw new Error("a filter is for a table that is not declared");
    return parseFilter(model, filter, { name: "filter", conditionsMax: FILTER_CONDITIONS_MAX, takesRelations });
  };
  return {
    /**
     * Compiles a filter on records of a declared table, whose relations are looked up in the transaction of the change. Errors: 400 naming
     * the condition that does not fit it.
     */
    ofTable(namespace: string, table: string, filter: AnyFilter): Matches {
      const tables = namespaces.get(namespace)?.tables;
      const wanted = parsed(tables?.get(table)?.model, filter, true);
      if (tables === undefined || !hasRelations(wanted)) return matching(plain(wanted));
      return (subject, tx) => matches(settled(wanted, subject, { some: someIn(tables, tx) }), subject);
    },
    // A table without a schema, as facts have no declared types.
    ofFacts: (filter: AnyFilter): Matches =>
      matching(plain(parsed(compileTables("facts", { facts: {} }).get("facts"), filter, false))),
  };
}

const matching =
  (filter: MatchFilter): Matches =>
  (subject) =>
    matches(filter, subject);

/** Returns the look-up of related records in a transaction. Errors: one that would examine too many records. */
const someIn =
  (tables: ReadonlyMap<string, Table>, tx: Transaction): RuleScope["some"] =>
  (name, filter) => {
    const table = tables.get(name);
    if (table === undefined) throw new LookupMistake(`There is no table "${name}"`);
    const source = {
      table,
      watched() {},
      once: <T>(_: string, read: (queries: Queries) => T) => read(tx),
    };
    return singleOf(source).some(filter);
  };
