import type { SourceRecord, SourceTable } from "../again/contents.ts";
import type { MovedColumn, MovedTable, MovePlan } from "./plan.ts";
import type { Conversion } from "./records.ts";

const NO_FILES: SourceRecord["files"] = new Map();

/** Returns the tables of a source in the form of here, those of hidden columns too. */
export const sourceTables = ({ tables }: MovePlan, conversion: Conversion): SourceTable[] =>
  tables.flatMap((table) => [
    sourceTable(table, conversion, { name: table.name, columns: table.columns, part: "record" }),
    ...(table.hidden.length === 0
      ? []
      : [sourceTable(table, conversion, { name: `${table.name}_hidden`, columns: table.hidden, part: "hidden" })]),
  ]);

const sourceTable = (
  table: MovedTable,
  conversion: Conversion,
  { name, columns, part }: { name: string; columns: readonly MovedColumn[]; part: "record" | "hidden" },
): SourceTable => ({
  name,
  isOfAccounts: false,
  partOf: part === "record" ? null : table.name,
  own: new Set(columns.map((column) => column.name)),
  files: [],
  *records(): Generator<SourceRecord> {
    for (const found of conversion.records(table)) {
      const record = found[part];
      yield { record: { ...record, id: String(record["id"]) }, files: NO_FILES };
    }
  },
});
