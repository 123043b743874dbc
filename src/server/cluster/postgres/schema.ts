import type { PostgresConnection } from "./connection.ts";
import { makePartitions } from "./partitions.ts";

/** The group of files that refer to one another: system.db, static namespaces and what belongs to them. */
export const CORE = "core";
/** Any number that nobody else locks: two nodes make the schema one after the other. */
const SCHEMA_LOCK = 4_912_650_147;

/**
 * Everything that a cluster keeps in PostgreSQL. The log has no unique index: positions are unique because the group's row moves on with
 * each. Partitions are made ahead, and dropped whole.
 */
const SCHEMA = [
  "CREATE SCHEMA IF NOT EXISTS platform",
  `CREATE TABLE IF NOT EXISTS platform.groups (
    name text PRIMARY KEY, history bigint NOT NULL, stopped boolean NOT NULL, epoch bigint NOT NULL, owner text NOT NULL,
    incarnation text NOT NULL, position bigint NOT NULL, nonce text NOT NULL)`,
  // The place behind which the log begins: what was before is in the object store.
  `ALTER TABLE platform.groups ADD COLUMN IF NOT EXISTS base bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS base_nonce text NOT NULL DEFAULT ''`,
  `CREATE TABLE IF NOT EXISTS platform.nodes (
    node text PRIMARY KEY, incarnation text NOT NULL, counter bigint NOT NULL, applied bigint NOT NULL, known bigint NOT NULL,
    acting bigint)`,
  // A table of its own: a barrier must not wait for a renewal.
  "CREATE TABLE IF NOT EXISTS platform.barriers (node text PRIMARY KEY, count bigint NOT NULL)",
  `CREATE TABLE IF NOT EXISTS platform.files (
    group_name text NOT NULL, file text NOT NULL, number bigint NOT NULL, PRIMARY KEY (group_name, file))`,
  `CREATE TABLE IF NOT EXISTS platform.log (
    group_name text NOT NULL, position bigint NOT NULL, file text NOT NULL, number bigint NOT NULL, epoch bigint NOT NULL,
    nonce text NOT NULL, previous text NOT NULL, content bytea NOT NULL) PARTITION BY RANGE (position)`,
  "ALTER TABLE platform.log ALTER COLUMN content SET STORAGE EXTERNAL",
  "CREATE INDEX IF NOT EXISTS log_places ON platform.log (group_name, position)",
];

/** Makes what is missing; a partition of the log has so many positions. Errors: the account may not. */
export async function makeSchema(connection: PostgresConnection, partitionPositions: number): Promise<void> {
  await connection.run("SELECT pg_advisory_lock($1::bigint)", [SCHEMA_LOCK]);
  try {
    for (const sql of SCHEMA) await connection.run(sql);
    await connection.run("INSERT INTO platform.groups VALUES ($1, 0, false, 0, '', '', 0, '') ON CONFLICT DO NOTHING", [
      CORE,
    ]);
    const { rows } = await connection.run("SELECT position::text FROM platform.groups WHERE name = $1", [CORE]);
    const end = new TextDecoder().decode(rows[0]?.[0] ?? new Uint8Array(0));
    await makePartitions(connection, Number(end), partitionPositions);
  } finally {
    await connection.run("SELECT pg_advisory_unlock($1::bigint)", [SCHEMA_LOCK]);
  }
}
