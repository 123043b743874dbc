import { Database } from "bun:sqlite";
import { createCodec } from "../../../areas/tables/model/codec.ts";
import { compileTables, type TableModel } from "../../../areas/tables/model/model.ts";
import type { TableConfig } from "../../../config/types.ts";
import { type Client, requireOk } from "../../transfer/client.ts";
import { pathOf } from "../load/comparison.ts";
import { inserter, writeToFile } from "../load/write.ts";
import type { Remarks } from "../remarks.ts";
import type { Contents, SourceRecord, SourceTable } from "./contents.ts";
import type { Decision } from "./decide.ts";

/** Decisions on the records of a table by id. */
export type Decisions = ReadonlyMap<string, Decision>;

/** Decisions by table. */
export type AllDecisions = ReadonlyMap<string, Decisions>;

/** Ids of records that could not be taken over, by table. */
export type Refused = Map<string, Set<string>>;

export const isTaken = (decision: Decision | undefined): boolean =>
  decision?.kind === "insert" || decision?.kind === "update";

/** Writes new and changed records into the file of a stopped server. */
export function writeTaken(
  file: string,
  tables: Readonly<Record<string, TableConfig>>,
  {
    contents,
    decisions,
    refused,
    remarks,
  }: { contents: Contents; decisions: AllDecisions; refused: Refused; remarks: Remarks },
): void {
  writeToFile(file, tables, (sqlite, models) => {
    for (const table of contents.tables) {
      const model = models.get(table.name);
      const decided = decisions.get(table.name);
      if (model === undefined || decided === undefined) continue;
      const insert = inserter(sqlite, model);
      const update = updater(sqlite, model, table);
      sqlite.transaction(() => {
        for (const { record } of table.records()) {
          const { kind } = decided.get(record.id) ?? {};
          try {
            if (kind === "insert" && !table.isOfAccounts) insert({ ...defaultsOf(model), ...record });
            else if (kind === "insert" || kind === "update") update(record);
          } catch (cause) {
            add(refused, table.name, record.id);
            remarks.lost(table.name, `the record ${record.id}, which does not fit here: ${String(cause)}`);
          }
        }
      })();
    }
  });
}

const add = (refused: Refused, table: string, id: string): void =>
  void refused.set(table, (refused.get(table) ?? new Set()).add(id));

/** Returns the defaults of the fields, which the source need not have. */
const defaultsOf = ({ columns }: TableModel) =>
  Object.fromEntries(
    columns.flatMap(({ name, field }) => (field?.default === undefined ? [] : [[name, field.default]])),
  );

function updater(sqlite: Database, model: TableModel, { own }: SourceTable): (record: SourceRecord["record"]) => void {
  const codec = createCodec(model);
  const columns = model.columns.filter(({ name, file }) => name !== "id" && file === null && own.has(name));
  if (columns.length === 0) return () => {};
  const set = columns.map(({ sql }) => `${sql} = ?`).join(", ");
  const statement = sqlite.prepare(`UPDATE ${model.sql} SET ${set} WHERE "id" = ?`);
  return (record) =>
    void statement.run(...columns.map((column) => codec.toValue(column, record[column.name] ?? null)), record.id);
}

/** Gives records that are taken over the files of there. Returns the ids of those that were changed by it. */
export async function sendTaken(
  client: Client,
  { name, files, records }: SourceTable,
  { taken, refused, remarks }: { taken: ReadonlySet<string>; refused: Refused; remarks: Remarks },
): Promise<Set<string>> {
  const changed = new Set<string>();
  if (files.length === 0) return changed;
  for (const one of records()) {
    const { id } = one.record;
    if (!taken.has(id)) continue;
    const form = new FormData();
    // A new file takes the place of one, and is added to several, of which none is kept.
    const emptied = files.flatMap((field) => {
      const isMany = Array.isArray(one.record[field]);
      return isMany || (one.files.get(field) ?? []).length === 0 ? [[field, isMany ? [] : null]] : [];
    });
    form.append("record", JSON.stringify(Object.fromEntries(emptied)));
    for (const field of files) {
      for (const file of one.files.get(field) ?? []) {
        form.append(field, Bun.file(file.path, { type: file.type }), file.name);
      }
    }
    const reply = await client.patchForm(`${pathOf(name)}/${encodeURIComponent(id)}`, form);
    if (reply.status === 200) changed.add(id);
    else {
      add(refused, name, id);
      remarks.lost(name, `the files of ${id}: ${String(reply.body["message"])}`);
    }
  }
  return changed;
}

/** Sets the times back that giving files has touched. */
export function restoreTaken(
  file: string,
  tables: Readonly<Record<string, TableConfig>>,
  changed: readonly { table: SourceTable; ids: ReadonlySet<string> }[],
): void {
  writeToFile(file, tables, (sqlite, models) => {
    for (const { table, ids } of changed) {
      const model = models.get(table.name);
      if (model === undefined) continue;
      const update = updater(sqlite, model, table);
      sqlite.transaction(() => {
        for (const { record } of table.records()) if (ids.has(record.id)) update(record);
      })();
    }
  });
}

/** A record that is to be deleted and stays, as a record refers to it that stays too. */
export interface Kept {
  table: string;
  id: string;
  by: string;
}

/** Finds the records among those to be deleted to which others refer that stay. */
export function referredTo(
  file: string,
  tables: Readonly<Record<string, TableConfig>>,
  deleted: ReadonlyMap<string, ReadonlySet<string>>,
): Kept[] {
  const kept: Kept[] = [];
  const sqlite = new Database(file, { readonly: true });
  try {
    for (const model of compileTables("shared", tables).values()) {
      for (const { column, to } of model.outgoing) {
        const ids = deleted.get(to.name);
        if (ids === undefined || ids.size === 0) continue;
        const sql =
          column.links === null
            ? `SELECT "id", ${column.sql} AS target FROM ${model.sql} WHERE ${column.sql} IS NOT NULL`
            : `SELECT "id", "target" FROM ${column.links}`;
        for (const row of sqlite.query<{ id: string; target: string }, []>(sql).iterate()) {
          if (!ids.has(row.target) || deleted.get(model.name)?.has(row.id) === true) continue;
          kept.push({ table: to.name, id: row.target, by: `${model.name}.${column.name} of ${row.id}` });
        }
      }
    }
  } finally {
    sqlite.close();
  }
  return kept;
}

/** Deletes records, in any order of their references. Returns those that the server keeps. */
export async function deleteAll(
  client: Client,
  paths: readonly { name: string; id: string; path: string }[],
  { refused, remarks }: { refused: Refused; remarks: Remarks },
): Promise<void> {
  let waiting = paths;
  for (let before = Number.POSITIVE_INFINITY; waiting.length > 0 && waiting.length < before; ) {
    before = waiting.length;
    const left: (typeof paths)[number][] = [];
    for (const one of waiting) {
      const reply = await client.delete(one.path);
      // One that referred to another one may have gone with it.
      if (reply.status === 409) left.push(one);
      else if (reply.status !== 404) requireOk(reply);
    }
    waiting = left;
  }
  for (const { name, id } of waiting) {
    add(refused, name, id);
    remarks.look(name, `${id} is gone there and stays here, as records refer to it`);
  }
}
