import type { JsonObject } from "../../../../kernel/json/json.ts";
import { filesIn } from "../../../areas/tables/files/values.ts";
import type { Client } from "../../transfer/client.ts";
import type { Account } from "../load/accounts.ts";
import { hashOf, recordsOf } from "../load/comparison.ts";
import type { Print } from "./decide.ts";
import { printOf } from "./state.ts";

/** A file of a record in the source. */
export interface SourceFile {
  path: string;
  name: string;
  type: string;
}

/** A record as it would be here, with its files by field. */
export interface SourceRecord {
  record: JsonObject & { id: string };
  files: ReadonlyMap<string, readonly SourceFile[]>;
}

/** A table of the source in the form of here. */
export interface SourceTable {
  name: string;
  /** Whether each of its records belongs to an account, with which it comes and goes. */
  isOfAccounts: boolean;
  /** The table whose records these are parts of, under the same ids; null: none. */
  partOf: string | null;
  /** Fields that are written here: those of accounts follow them. */
  own: ReadonlySet<string>;
  /** Fields of files. */
  files: readonly string[];
  records(): Iterable<SourceRecord>;
}

/** Everything of a source that a move brings. */
export interface Contents {
  accounts: readonly Account[];
  tables: readonly SourceTable[];
}

/** Hashes of the records of a table by id. */
export type Prints = ReadonlyMap<string, Print>;

/** Returns the hashes of a source's record, with names and bytes of its files. */
export async function printThere({ record, files }: SourceRecord): Promise<Print> {
  const stored: JsonObject = {};
  for (const [field, list] of files) {
    const hashes = await Promise.all(list.map(async ({ path }) => hashOf(Bun.file(path).stream())));
    stored[field] = list.map(({ name }, index) => `${name}:${hashes[index] ?? ""}`);
  }
  return printOf({ ...record, ...stored });
}

/** Reads the records of a source's table. */
export async function printsThere(table: SourceTable): Promise<Prints> {
  const prints = new Map<string, Print>();
  for (const one of table.records()) prints.set(one.record.id, await printThere(one));
  return prints;
}

/** Reads the records of a table here, as the API answers them. */
export async function printsHere(client: Client, { name, files }: SourceTable): Promise<Prints> {
  const prints = new Map<string, Print>();
  for await (const record of recordsOf(client, name)) {
    const stored: JsonObject = {};
    for (const field of files) {
      const list = filesIn(record[field]);
      const hashes = await Promise.all(list.map(async ({ url }) => hashOf((await client.bytes(url)).body)));
      stored[field] = list.map(({ name: file }, index) => `${file}:${hashes[index] ?? ""}`);
    }
    prints.set(String(record["id"]), printOf({ ...record, ...stored }));
  }
  return prints;
}
