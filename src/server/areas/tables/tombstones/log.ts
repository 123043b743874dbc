import { type DatabaseFile, quoteIdentifier, TOMBSTONES_TABLE } from "../../../db/index.ts";
import type { Namespace, Table } from "../records/namespaces.ts";
import { referringOf } from "../write/referring.ts";
import type { Place, Target, Tombstone } from "./machine.ts";

/** A static namespace to whose tables other namespaces refer. */
export type TargetNamespace = Namespace & { kind: "static" };

const LOG = quoteIdentifier(TOMBSTONES_TABLE);
const COLUMNS = `"seq", "mark", "table", "id"`;

/** Returns the log of a namespace's file. */
export function targetOf({ file, tables }: TargetNamespace): Target {
  return {
    last: () =>
      file.query<Pick<Place, "seq" | "mark">>(`SELECT "seq", "mark" FROM ${LOG} ORDER BY "seq" DESC LIMIT 1`).get() ??
      NOTHING,
    markOf(seq) {
      if (seq > 0)
        return file.query<{ mark: string }>(`SELECT "mark" FROM ${LOG} WHERE "seq" = ?`).get(seq)?.mark ?? null;
      const first = file.query<{ seq: number | null }>(`SELECT min("seq") AS "seq" FROM ${LOG}`).get()?.seq ?? 1;
      return first === 1 ? NOTHING.mark : null;
    },
    after: (seq, limit) =>
      file.query<Tombstone>(`SELECT ${COLUMNS} FROM ${LOG} WHERE "seq" > ? ORDER BY "seq" LIMIT ?`).all(seq, limit),
    missing(name, ids) {
      const table = tables.get(name);
      return table === undefined ? [] : referringOf(table).missing(file, ids);
    },
  };
}

const NOTHING = { seq: 0, mark: "" };

/** Returns which of the records was created last; null: none of them exists. */
export function newestOf(file: DatabaseFile, { model }: Table, ids: readonly string[]): string | null {
  const found = file
    .query<{ id: string }>(
      `SELECT "id" FROM ${model.sql} WHERE "id" IN (SELECT value FROM json_each(?)) ORDER BY rowid DESC LIMIT 1`,
    )
    .get(JSON.stringify(ids));
  return found?.id ?? null;
}
