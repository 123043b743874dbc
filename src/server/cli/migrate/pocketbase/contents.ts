import type { SourceRecord, SourceTable } from "../again/contents.ts";
import type { MovedField } from "./fields.ts";
import type { MovedTable, MovePlan } from "./plan.ts";
import { type Conversion, filesOf } from "./records.ts";
import type { PbSource } from "./source.ts";

const isOfFiles = ({ kind }: MovedField): boolean => kind === "file" || kind === "files";

/** Returns the tables of a source in the form of here, those of hidden fields too. */
export function sourceTables(source: PbSource, plan: MovePlan, conversion: Conversion): SourceTable[] {
  return plan.tables.flatMap((table) => [
    sourceTable(table, { name: table.name, fields: table.fields, recordOf: conversion.record }),
    ...(table.hidden === null ? [] : [sourceTable(table, { ...table.hidden, recordOf: conversion.hiddenRecord })]),
  ]);

  function sourceTable(
    table: MovedTable,
    { name, fields, recordOf }: Pick<MovedTable, "name" | "fields"> & { recordOf: Conversion["hiddenRecord"] },
  ): SourceTable {
    const files = fields.filter(isOfFiles);
    const isOfAccounts = table.kind === "users" && name === table.name;
    return {
      name,
      isOfAccounts,
      partOf: name === table.name ? null : table.name,
      own: new Set([...fields.map((field) => field.name), ...(isOfAccounts ? [] : ["createdAt", "updatedAt"])]),
      files: files.map((field) => field.name),
      *records(): Generator<SourceRecord> {
        for (const row of conversion.rows(table)) {
          const record = recordOf(table, row);
          if (record === null) continue;
          const stored = files.map((field) => [field.name, filesOf(source, table, field, row)] as const);
          yield { record: { ...record, id: String(row["id"]) }, files: new Map(stored) };
        }
      },
    };
  }
}
