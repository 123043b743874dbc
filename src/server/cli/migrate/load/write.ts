import { Database } from "bun:sqlite";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { createCodec } from "../../../areas/tables/model/codec.ts";
import { compileTables, type TableModel } from "../../../areas/tables/model/model.ts";
import type { TableConfig } from "../../../config/types.ts";
import { quoteIdentifier } from "../../../db/index.ts";
import { countRows } from "../../../db/writer/row-counts.ts";
import { CommandError } from "../../errors.ts";

/** Models of the tables that were written to a config, by name. */
export type Models = ReadonlyMap<string, TableModel>;

/**
 * Writes to the new file of the namespace, which no server has open. References in any order and in cycles are checked once, at the
 * end.
 */
export function writeToFile(
  file: string,
  tables: Readonly<Record<string, TableConfig>>,
  work: (sqlite: Database, models: Models) => void,
): void {
  const models = compileTables("shared", tables);
  const sqlite = new Database(file, { readwrite: true });
  try {
    sqlite.run("PRAGMA foreign_keys = OFF");
    work(sqlite, models);
    countRows(
      sqlite,
      [...models.values()].filter(({ view }) => view === null).map(({ name }) => name),
      quoteIdentifier,
    );
    const broken = sqlite.query<{ table: string; parent: string }, []>("PRAGMA foreign_key_check").get();
    if (broken !== null)
      throw new CommandError(`${broken.table} refers to records of ${broken.parent} that do not exist`);
  } finally {
    sqlite.close();
  }
}

/** Returns the model of a table. */
export function required(models: ReadonlyMap<string, TableModel>, name: string): TableModel {
  const model = models.get(name);
  if (model === undefined) throw new Error(`the config that was written has no table ${name}`);
  return model;
}

/** A value for a file that comes later, where the column takes no null. */
const NO_FILE_YET = "null";

/** Returns a function that inserts a record. */
export function inserter(sqlite: Database, model: TableModel): (record: JsonObject) => void {
  const codec = createCodec(model);
  const slots = model.columns.map(() => "?").join(", ");
  const insert = sqlite.prepare(`INSERT INTO ${model.sql} (${model.selectList}) VALUES (${slots})`);
  return (record) => {
    const values = codec.toValues(record);
    for (const [index, { file, isNullable }] of model.columns.entries()) {
      if (file !== null && !isNullable) values[index] ??= NO_FILE_YET;
    }
    insert.run(...values);
  };
}
