import { Database } from "bun:sqlite";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { createCodec } from "../../../areas/tables/model/codec.ts";
import type { TableModel } from "../../../areas/tables/model/model.ts";
import { idProblem } from "../../../areas/tables/model/validation.ts";
import type { TableConfig } from "../../../config/types.ts";
import { quoteIdentifier } from "../../../db/index.ts";
import { inserter, required, writeToFile } from "../load/write.ts";
import type { Remarks } from "../remarks.ts";
import type { MovedField } from "./fields.ts";
import { storedFiles } from "./files.ts";
import type { MovedTable, MovePlan } from "./plan.ts";
import type { PbSource } from "./source.ts";
import { instant, type Known, movedValue } from "./values.ts";

type Row = Record<string, unknown>;

const DANGLING_SHOWN_MAX = 5;

/** The ids of the records that are moved, by table. */
export type MovedIds = ReadonlyMap<string, ReadonlySet<string>>;

/** Returns the ids of the records that are moved. `accounts`: the ids of the accounts that were taken. */
export function movedIds(
  source: PbSource,
  plan: MovePlan,
  accounts: Pick<ReadonlySet<string>, "has">,
  remarks: Remarks,
): MovedIds {
  const ids = new Map<string, Set<string>>();
  for (const { collection, name, kind } of plan.tables) {
    const known = new Set<string>();
    for (const row of source.rows(collection.name)) {
      const id = String(row["id"]);
      const problem = idProblem(id);
      if (problem !== null) remarks.lost(collection.name, `the record ${JSON.stringify(id)}: ${problem.message}`);
      else if (kind === "records" || accounts.has(id)) known.add(id);
    }
    ids.set(name, known);
  }
  return ids;
}

/**
 * Converts records. References to what is not moved become null, and are counted. `referable`: the ids that may be referred to, where
 * they are fewer.
 */
export function createConversion(source: PbSource, ids: MovedIds, referable: MovedIds = ids) {
  // By place and record, so that reading a record again counts nothing twice.
  const dangling = new Map<string, Map<string, string[]>>();
  const isKnown: Known = (table, id) => referable.get(table)?.has(id) === true;

  const valuesOf = (table: MovedTable, fields: readonly MovedField[], row: Row): JsonObject => {
    const values: JsonObject = {};
    for (const field of fields) {
      const missing: string[] = [];
      const onDangling = (id: string) => void missing.push(id);
      values[field.name] = movedValue(field, row[field.source.name], { isKnown, onDangling });
      if (missing.length === 0) continue;
      const place = `${table.collection.name}.${field.source.name}`;
      dangling.set(place, (dangling.get(place) ?? new Map()).set(String(row["id"]), missing));
    }
    return values;
  };
  const timesOf = ({ times, kind }: MovedTable, row: Row): JsonObject => {
    const created = instant(row["created"]) ?? instant(row["updated"]) ?? new Date(0).toISOString();
    return {
      ...(times.createdAt === null && kind !== "users" ? {} : { createdAt: created }),
      ...(times.updatedAt === null || kind === "users" ? {} : { updatedAt: instant(row["updated"]) ?? created }),
    };
  };
  return {
    isMoved: ({ name }: MovedTable, id: string): boolean => ids.get(name)?.has(id) === true,
    /** Yields the rows of a table that are moved. */
    *rows({ collection, name }: MovedTable): Generator<Row> {
      const known = ids.get(name);
      for (const row of source.rows(collection.name)) if (known?.has(String(row["id"])) === true) yield row;
    },
    record: (table: MovedTable, row: Row): JsonObject => ({
      id: String(row["id"]),
      ...valuesOf(table, table.fields, row),
      ...timesOf(table, row),
    }),
    hiddenRecord: (table: MovedTable, row: Row): JsonObject | null =>
      table.hidden === null ? null : { id: String(row["id"]), ...valuesOf(table, table.hidden.fields, row) },
    tellDangling(remarks: Remarks): void {
      for (const [place, records] of dangling) {
        const missing = [...records.values()].flat();
        const shown = [...new Set(missing)].slice(0, DANGLING_SHOWN_MAX).join(", ");
        remarks.lost(
          place,
          `${missing.length} references to records that do not exist, such as ${shown}: they are null`,
        );
      }
      dangling.clear();
    },
  };
}

export type Conversion = ReturnType<typeof createConversion>;

/** Writes all records into the new file of the namespace. */
export function writeRecords(
  file: string,
  tables: Readonly<Record<string, TableConfig>>,
  { plan, conversion }: { plan: MovePlan; conversion: Conversion },
): void {
  writeToFile(file, tables, (sqlite, models) => {
    for (const table of plan.tables) {
      const model = required(models, table.name);
      const hidden = table.hidden === null ? null : required(models, table.hidden.name);
      sqlite.transaction(() => {
        const write = table.kind === "users" ? ownFieldsWriter(sqlite, model, table) : inserter(sqlite, model);
        const writeHidden = hidden === null ? null : inserter(sqlite, hidden);
        for (const row of conversion.rows(table)) {
          write(conversion.record(table, row));
          const secret = conversion.hiddenRecord(table, row);
          if (secret !== null) writeHidden?.(secret);
        }
      })();
    }
  });
}

/** Returns a writer of the fields of your own of accounts, whose records exist. */
function ownFieldsWriter(sqlite: Database, model: TableModel, { fields }: MovedTable): (record: JsonObject) => void {
  if (fields.length === 0) return () => {};
  const codec = createCodec(model);
  const columns = fields.flatMap(({ name }) => model.byName.get(name) ?? []);
  const update = sqlite.prepare(
    `UPDATE ${model.sql} SET ${columns.map(({ sql }) => `${sql} = ?`).join(", ")} WHERE "id" = ?`,
  );
  return (record) =>
    void update.run(
      ...columns.map((column) => codec.toValue(column, record[column.name] ?? null)),
      String(record["id"]),
    );
}

/** Sets the times of records back that got their files. */
export function restoreTimes(
  file: string,
  { plan, conversion, source }: { plan: MovePlan; conversion: Conversion; source: PbSource },
): void {
  const sqlite = new Database(file, { readwrite: true });
  try {
    for (const table of plan.tables) {
      const touched = table.fields.filter(({ isTouched }) => isTouched).map(({ name }) => name);
      const names = [...(table.times.updatedAt === null || table.kind === "users" ? [] : ["updatedAt"]), ...touched];
      const files = table.fields.filter(({ kind }) => kind === "file" || kind === "files");
      if (names.length === 0 || files.length === 0) continue;
      const set = names.map((name) => `${quoteIdentifier(name)} = ?`).join(", ");
      const update = sqlite.prepare(`UPDATE ${quoteIdentifier(table.name)} SET ${set} WHERE "id" = ?`);
      sqlite.transaction(() => {
        for (const row of conversion.rows(table)) {
          const hasFiles = files.some((field) => filesOf(source, table, field, row).length > 0);
          const record = hasFiles ? conversion.record(table, row) : null;
          // The values of times are texts.
          if (record !== null) update.run(...names.map((name) => record[name] as string), String(row["id"]));
        }
      })();
    }
  } finally {
    sqlite.close();
  }
}

export const filesOf = (source: PbSource, { collection }: MovedTable, field: MovedField, row: Row) =>
  storedFiles(source, collection, String(row["id"]), row[field.source.name]).found;
