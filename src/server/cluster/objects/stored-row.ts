import type { PostgresConnection } from "../postgres/connection.ts";
import type { Row } from "../postgres/wire.ts";
import type { StoredPlace } from "./stored-place.ts";

/** Table of the object store's state, for nodes and operators. */
export const STORED_TABLE = `CREATE TABLE IF NOT EXISTS platform.stored (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), ok boolean NOT NULL, message text, history bigint NOT NULL,
    position bigint NOT NULL, nonce text NOT NULL, epoch bigint NOT NULL, last_copy_at bigint)`;

/** State of the object store, as its owner has last noted it. */
export interface StoredRow {
  ok: boolean;
  /** A problem; null: there is none. */
  message: string | null;
  /** A place of the log that all files in the store have reached. */
  place: StoredPlace;
  /** Time of the last full copy; null: there is none. */
  lastCopyAt: number | null;
}

const decoder = new TextDecoder();
const textOf = (row: Row, at: number): string | null => {
  const value = row[at] ?? null;
  return value === null ? null : decoder.decode(value);
};

/** Reads the row; null: nothing is stored yet. */
export async function readStored(connection: PostgresConnection): Promise<StoredRow | null> {
  const { rows } = await connection.run(
    `SELECT ok::text, message, history::text, position::text, nonce, epoch::text, last_copy_at::text FROM platform.stored`,
  );
  const [row] = rows;
  if (row === undefined) return null;
  const lastCopyAt = textOf(row, 6);
  return {
    ok: textOf(row, 0) === "true",
    message: textOf(row, 1),
    place: {
      history: Number(textOf(row, 2)),
      position: Number(textOf(row, 3)),
      nonce: textOf(row, 4) ?? "",
      epoch: Number(textOf(row, 5)),
    },
    lastCopyAt: lastCopyAt === null ? null : Number(lastCopyAt),
  };
}

/** Notes the state of the store; that of an earlier owner changes nothing. */
export async function noteStored(connection: PostgresConnection, state: StoredRow): Promise<void> {
  const { ok, message, place, lastCopyAt } = state;
  await connection.run(
    `INSERT INTO platform.stored (ok, message, history, position, nonce, epoch, last_copy_at)
     VALUES ($1::boolean, $2, $3::bigint, $4::bigint, $5, $6::bigint, $7::bigint)
     ON CONFLICT (only_one) DO UPDATE SET ok = excluded.ok, message = excluded.message, history = excluded.history,
       position = excluded.position, nonce = excluded.nonce, epoch = excluded.epoch, last_copy_at = excluded.last_copy_at
     WHERE platform.stored.epoch <= excluded.epoch`,
    [String(ok), message, place.history, place.position, place.nonce, place.epoch, lastCopyAt],
  );
}

/**
 * Compares a place that the object store has with the log. Returns what is wrong; null: nothing, or the log no longer has that position.
 */
export async function compareStored(connection: PostgresConnection, place: StoredPlace): Promise<string | null> {
  const { rows } = await connection.run(
    `SELECT g.history::text, g.position::text, (SELECT l.nonce FROM platform.log l WHERE l.group_name = g.name
       AND l.position = $2::bigint LIMIT 1) FROM platform.groups g WHERE g.name = $1`,
    ["core", place.position],
  );
  const [row] = rows;
  if (row === undefined || Number(textOf(row, 0)) !== place.history) return null;
  if (Number(textOf(row, 1)) < place.position)
    return `the object store has position ${place.position}, and the log ends at ${textOf(row, 1)}`;
  const nonce = textOf(row, 2);
  if (nonce === null || nonce === place.nonce) return null;
  return `position ${place.position} has one content in the object store, and another one in the log`;
}
