import type { PostgresConnection } from "./connection.ts";
import type { Row } from "./wire.ts";

/** Partitions that are made ahead of the log's end. */
const PARTITIONS_AHEAD = 2;
/** Partitions that are dropped at a time: the next ones follow with the next look. */
const DROPPED_MAX = 100;

/** Positions of a partition: from the first to the one before `to`. */
interface Partition {
  name: string;
  from: number;
  to: number;
  /** Whether a detachment was begun and not completed. */
  isPending: boolean;
}

const decoder = new TextDecoder();
const textOf = (row: Row, at: number): string => decoder.decode(row[at] ?? new Uint8Array(0));

/** Names are made of digits only: nothing of them comes from a request. */
const PARTITIONS = `SELECT c.relname, i.inhdetachpending::text, pg_get_expr(c.relpartbound, c.oid)
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'platform.log'::regclass`;
const BOUNDS = /FROM \('?(\d+)'?\) TO \('?(\d+)'?\)/;
const NAME = /^log_\d+$/;

async function partitionsOf(connection: PostgresConnection): Promise<Partition[]> {
  const { rows } = await connection.run(PARTITIONS);
  const found = rows.map((row): Partition => {
    const [, from, to] = BOUNDS.exec(textOf(row, 2)) ?? [];
    return { name: textOf(row, 0), from: Number(from), to: Number(to), isPending: textOf(row, 1) === "true" };
  });
  return found.filter(({ name }) => NAME.test(name)).sort((one, other) => one.from - other.from);
}

/**
 * Makes partitions of `size` positions, as far as the log's end needs them, behind those that there are. Each is attached: made as a
 * partition it would wait for every transaction that has read the log, and every append would wait behind it.
 */
export async function makePartitions(connection: PostgresConnection, position: number, size: number): Promise<void> {
  const last = (await partitionsOf(connection)).at(-1);
  for (let from = last?.to ?? 0; from <= position + PARTITIONS_AHEAD * size; from += size) {
    await connection.run(`DO $$ BEGIN
      LOCK TABLE platform.log IN SHARE UPDATE EXCLUSIVE MODE;
      IF to_regclass('platform.log_${from}') IS NULL THEN
        CREATE TABLE platform.log_${from} (LIKE platform.log INCLUDING STORAGE);
        ALTER TABLE platform.log ATTACH PARTITION platform.log_${from} FOR VALUES FROM (${from}) TO (${from + size});
      END IF;
    END $$`);
  }
}

/**
 * Drops the partitions that end at or before a position, whole, without a wait for readers of the others; where the log begins then is
 * noted first. Only for the owner of this incarnation. Goes on with what a killed one has left.
 */
export async function trimLog(
  connection: PostgresConnection,
  { group, incarnation, upTo }: { group: string; incarnation: string; upTo: number },
): Promise<void> {
  const partitions = await partitionsOf(connection);
  const done = partitions.filter(({ to }) => to - 1 <= upTo).slice(0, DROPPED_MAX);
  const last = done.at(-1);
  if (last === undefined) return;
  const { rows } = await connection.run(
    `UPDATE platform.groups g SET base = l.position, base_nonce = l.nonce
     FROM (SELECT position, nonce FROM platform.log WHERE group_name = $1 AND position = $2::bigint LIMIT 1) l
     WHERE g.name = $1 AND g.incarnation = $3 AND g.base < l.position RETURNING 1`,
    [group, last.to - 1, incarnation],
  );
  const isNoted = rows.length > 0 || (await baseOf(connection, group)) >= last.to - 1;
  if (!isNoted) return;
  for (const { name, isPending } of done) {
    const how = isPending ? "FINALIZE" : "CONCURRENTLY";
    await connection.run(`ALTER TABLE platform.log DETACH PARTITION platform.${name} ${how}`);
    await connection.run(`DROP TABLE platform.${name}`);
  }
}

/** Drops what was detached by a process that was killed before it dropped it. */
export async function dropDetached(connection: PostgresConnection): Promise<void> {
  const { rows } = await connection.run(
    `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = 'platform' AND c.relkind = 'r' AND c.relname ~ '^log_[0-9]+$' AND NOT c.relispartition LIMIT ${DROPPED_MAX}`,
  );
  for (const row of rows) await connection.run(`DROP TABLE IF EXISTS platform.${textOf(row, 0)}`);
}

async function baseOf(connection: PostgresConnection, group: string): Promise<number> {
  const { rows } = await connection.run("SELECT base::text FROM platform.groups WHERE name = $1", [group]);
  const [row] = rows;
  return row === undefined ? 0 : Number(textOf(row, 0));
}
