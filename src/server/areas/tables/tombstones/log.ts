import { type DatabaseFile, MOVES_TABLE, quoteIdentifier, TOMBSTONES_TABLE } from "../../../db/index.ts";
import type { Namespace, Table } from "../records/namespaces.ts";
import { referringOf } from "../write/referring.ts";
import type { Place, Target, Tombstone } from "./machine.ts";

/** A static namespace to whose tables other namespaces refer. */
export type TargetNamespace = Namespace & { kind: "static" };

const LOG = quoteIdentifier(TOMBSTONES_TABLE);
const MOVES = quoteIdentifier(MOVES_TABLE);
const AFTER = `SELECT l."seq", l."mark", l."table", l."id", m."into" FROM ${LOG} AS l
  LEFT JOIN ${MOVES} AS m ON m."table" = l."table" AND m."id" = l."id" AND m."seq" = l."seq"
  WHERE l."seq" > ? ORDER BY l."seq" LIMIT ?`;
const MOVED = `SELECT "seq", "into" FROM ${MOVES} WHERE "table" = ? AND "id" = ?`;

interface Moved {
  seq: number;
  into: string | null;
}

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
    after: (seq, limit) => file.query<Tombstone>(AFTER).all(seq, limit),
    missing(name, ids) {
      const table = tables.get(name);
      return table === undefined ? [] : referringOf(table).missing(file, ids);
    },
    lastMove(name, id) {
      const move = file.query<Moved>(`${MOVED} AND "seq" > 0 ORDER BY "seq" DESC LIMIT 1`).get(name, id);
      return move === null || move.into === null ? null : { seq: move.seq, into: move.into };
    },
    moveAfter: (name, { seq, into }) =>
      file.query<Moved>(`${MOVED} AND "seq" > ? ORDER BY "seq" LIMIT 1`).get(name, into, seq),
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
