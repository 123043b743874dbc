import { Database } from "bun:sqlite";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { formatCell } from "../../../../kernel/transfer/csv-cells.ts";
import { filesIn } from "../../../areas/tables/files/values.ts";
import { createCodec, type Row } from "../../../areas/tables/model/codec.ts";
import { declareTable, isInstanceId, type TableModel } from "../../../areas/tables/model/model.ts";
import type { FieldType } from "../../../config/types.ts";
import { isEmptyFile } from "../../../db/files/file-identity.ts";
import { isAsDeclared } from "../../../db/schema/declared.ts";
import { CommandError } from "../../errors.ts";
import { databasesOf } from "../../rehearsal/beside-server.ts";
import { formatRows } from "../rows.ts";
import { TextFile } from "./folder.ts";
import type { ExportedNamespace } from "./schema-sql.ts";
import type { createFileCopies } from "./stored-files.ts";

const ENDING = ".db";
/** The time that a file is waited for which a server has locked to open or close it. */
const LOCK_TIMEOUT_MS = 5_000;

/** Opens a file for reading, beside a server or without one. */
export function openForExport(path: string): Database {
  const sqlite = new Database(path, { readonly: true });
  sqlite.run(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
  return sqlite;
}

/** Returns the files of a namespace that exist, each with the folders of its tables. */
function filesOf(data: string, { name, isDynamic }: ExportedNamespace): { path: string; place: string[] }[] {
  const path = join(databasesOf(data), name);
  if (!isDynamic) return existsSync(path + ENDING) ? [{ path: path + ENDING, place: [name] }] : [];
  if (!existsSync(path)) return [];
  const ids = readdirSync(path).flatMap((file) => (file.endsWith(ENDING) ? [file.slice(0, -ENDING.length)] : []));
  return ids
    .filter(isInstanceId)
    .sort()
    .map((id) => ({ path: join(path, id + ENDING), place: [name, id] }));
}

interface Exporting {
  data: string;
  folder: string;
  copies: ReturnType<typeof createFileCopies>;
  signal: AbortSignal;
}

/** Writes the tables of a namespace, each file as it is at one moment. Returns the numbers of records and of files of records. */
export async function exportNamespace(
  namespace: ExportedNamespace,
  { data, folder, copies, signal }: Exporting,
): Promise<{ records: number; files: number }> {
  const count = { records: 0, files: 0 };
  const stored = namespace.models.filter(({ view }) => view === null);
  const isCurrent = isAsDeclared(stored.map(declareTable));
  for (const { path, place } of filesOf(data, namespace)) {
    // A power cut leaves an instance so before anything was stored.
    if (isEmptyFile(path)) continue;
    using sqlite = openForExport(path);
    sqlite.run("BEGIN");
    if (!isCurrent(sqlite)) {
      throw new CommandError(`${path} is not as the config declares it: start the server with this config once`);
    }
    for (const model of stored) {
      const table = new ExportedTable(sqlite, model.full ?? model, join(folder, ...place));
      for (const record of table.write()) {
        signal.throwIfAborted();
        count.records += 1;
        for (const { name: field, file } of model.files) {
          for (const { id: fileId, name, size } of filesIn(record[field])) {
            await copies.ofRecord([...place, model.name, String(record["id"]), field], {
              bucket: file.bucket,
              fileId,
              name,
              size,
            });
            count.files += 1;
          }
        }
      }
    }
  }
  return count;
}

/** A table of a file, written as NDJSON and CSV. */
class ExportedTable {
  readonly #sqlite: Database;
  readonly #model: TableModel;
  readonly #path: string;

  constructor(sqlite: Database, model: TableModel, folder: string) {
    this.#sqlite = sqlite;
    this.#model = model;
    this.#path = join(folder, model.name);
  }

  /** Writes the records in the order of their ids, and yields each. */
  *write(): Generator<JsonObject> {
    const columns = this.#csvColumns();
    const [ndjson, csv] = [new TextFile(`${this.#path}.ndjson`), new TextFile(`${this.#path}.csv`)];
    try {
      csv.write(formatRows([columns.map(({ name }) => formatCell(name, undefined))]));
      for (const record of this.#records()) {
        ndjson.write(`${JSON.stringify(record)}\n`);
        csv.write(formatRows([columns.map(({ name, type }) => formatCell(record[name], type))]));
        yield record;
      }
    } finally {
      ndjson.end();
      csv.end();
    }
  }

  *#records(): Generator<JsonObject> {
    const { selectList, sql } = this.#model;
    const codec = createCodec(this.#model);
    const select = this.#sqlite.prepare<Row, []>(`SELECT ${selectList} FROM ${sql} ORDER BY "id"`);
    for (const row of select.iterate()) yield codec.fromRow(row);
  }

  /** Returns the columns of the CSV; a schemaless table is read for its own. */
  #csvColumns(): { name: string; type: FieldType | undefined }[] {
    if (!this.#model.isSchemaless) return this.#model.columns.map(({ name, type }) => ({ name, type }));
    const names = new Set<string>(["id"]);
    for (const record of this.#records()) for (const name of Object.keys(record)) names.add(name);
    return [...names].map((name) => ({ name, type: undefined }));
  }
}
