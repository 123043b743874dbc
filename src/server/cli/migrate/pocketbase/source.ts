import type { Database } from "bun:sqlite";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { openUnchanged, quoteIdentifier } from "../../../db/index.ts";
import { CommandError } from "../../errors.ts";
import { collectionOf, type PbCollection } from "./collections.ts";

const DATA_FILE = "data.db";
const HOOKS = /\.pb\.(?:js|ts)$/;

type Row = Record<string, unknown>;

/** A `pb_data` folder, read as it is at one moment. */
export type PbSource = ReturnType<typeof openPbData>;

/** Opens a `pb_data` folder and changes nothing in it. Errors: CommandError for a folder that is none. */
export function openPbData(folder: string) {
  const file = join(folder, DATA_FILE);
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new CommandError(`${folder} has no ${DATA_FILE}: name a pb_data folder, or a backup zip of PocketBase`);
  }
  let database: Database;
  let collections: PbCollection[];
  try {
    database = openUnchanged(file);
    // All reads of the transaction see the file of this moment, also beside a running server.
    database.run("BEGIN");
    collections = database
      .query<Row, []>("SELECT * FROM _collections ORDER BY name")
      .all()
      .flatMap((row) => collectionOf(row) ?? []);
  } catch (cause) {
    throw new CommandError(`${file} cannot be read as PocketBase's: ${reasonOf(cause)}`, { cause });
  }
  const first = (sql: string): Row | null => database.query<Row, []>(sql).get();
  const hasTable = (name: string): boolean =>
    database.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?").get(name) !== null;
  const superusers = ["_superusers", "_admins"].filter(hasTable).flatMap((table) =>
    database
      .query<{ email: string }, []>(`SELECT email FROM ${table} ORDER BY email`)
      .all()
      .map(({ email }) => email),
  );
  return {
    folder,
    collections,
    /** Null where they are encrypted. */
    settings: hasTable("_params") ? settingsIn(first) : null,
    /** Addresses of the superusers. */
    superusers,
    /** Names of files with hooks, beside the folder. */
    hooks: hooksBeside(folder),
    /** Yields the rows of a table in the order of their ids. */
    rows: (table: string): IterableIterator<Row> =>
      database.query<Row, []>(`SELECT * FROM ${quoteIdentifier(table)} ORDER BY id`).iterate(),
    /** Returns the first row of a query of ours. */
    first,
    hasTable,
    count: (table: string): number =>
      database.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${quoteIdentifier(table)}`).get()?.n ?? 0,
    close: (): void => database.close(),
  };
}

function settingsIn(first: (sql: string) => Row | null): JsonObject | null {
  const isKeyed = first("SELECT 1 FROM pragma_table_info('_params') WHERE name = 'key'") !== null;
  const value = first(`SELECT value FROM _params WHERE ${isKeyed ? "key" : "id"} = 'settings'`)?.["value"];
  try {
    const text = value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value);
    const settings: unknown = JSON.parse(text);
    return isJsonObject(settings) ? settings : null;
  } catch {
    return null;
  }
}

function hooksBeside(folder: string): string[] {
  const beside = join(folder, "..", "pb_hooks");
  return existsSync(beside)
    ? readdirSync(beside, { recursive: true, encoding: "utf8" })
        .filter((name) => HOOKS.test(name))
        .sort()
    : [];
}
