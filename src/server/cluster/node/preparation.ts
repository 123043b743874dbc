import type { Clock } from "../../../kernel/clock.ts";
import { pause } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { STORED_TABLE } from "../objects/stored-row.ts";
import { PostgresConnection } from "../postgres/connection.ts";
import { makePartitions } from "../postgres/partitions.ts";
import { CORE, makeSchema } from "../postgres/schema.ts";
import type { Row } from "../postgres/wire.ts";
import type { Durability } from "../protocol/statements.ts";
import { type ClusterSecrets, secretMarks } from "./credentials.ts";
import { PARTITION_POSITIONS, POSTGRES_RETRY_MS, POSTGRES_WAIT_MS } from "./limits.ts";

const decoder = new TextDecoder();
const textOf = (row: Row | undefined, at: number): string => decoder.decode(row?.[at] ?? new Uint8Array(0));

/** The format of the log and of what nodes say to each other. A cluster of another one is refused. */
const FORMAT = 1;

/** Tables that the protocol does not need: the identity of the cluster, and facts of nodes for operators. */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS platform.cluster (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), id text NOT NULL, format int NOT NULL,
    jwt_mark text NOT NULL, key_mark text NOT NULL)`,
  "CREATE TABLE IF NOT EXISTS platform.facts (node text PRIMARY KEY, version text NOT NULL, config text NOT NULL)",
  STORED_TABLE,
];

export interface Preparation {
  postgres: string;
  durability: Durability;
  secrets: ClusterSecrets;
  /** Facts that others are told of this node. */
  facts: { node: string; version: string; config: string };
  clock: Clock;
  ids: Ids;
  /** Called once, when PostgreSQL does not answer at once. */
  onWait(reason: string): void;
}

/** An error that no waiting mends. */
export class NotOfThisCluster extends Error {
  override readonly name = "NotOfThisCluster";
}

/**
 * Prepares PostgreSQL for a node: makes what is missing, and compares what has to be the same on all nodes. Returns the cluster's id.
 * Errors: PostgreSQL does not answer for POSTGRES_WAIT_MS; the secrets are not the cluster's; it is less durable than the config asks.
 */
export async function prepare(options: Preparation): Promise<{ cluster: string }> {
  const { postgres, clock, ids, onWait } = options;
  const givesUpAt = performance.now() + POSTGRES_WAIT_MS;
  for (let tries = 0; ; tries++) {
    try {
      const connection = await PostgresConnection.open({
        url: postgres,
        applicationName: "platform start",
        nonce: () => ids.secret(18),
        closed() {},
      });
      try {
        return await prepareOn(connection, options);
      } finally {
        connection.close();
      }
    } catch (cause) {
      if (cause instanceof NotOfThisCluster) throw cause;
      const reason = reasonOf(cause);
      if (performance.now() >= givesUpAt)
        throw new NotOfThisCluster(`cluster.postgres does not answer: ${reason}`, { cause });
      if (tries === 0) onWait(reason);
      await pause(clock, POSTGRES_RETRY_MS);
    }
  }
}

async function prepareOn(connection: PostgresConnection, options: Preparation): Promise<{ cluster: string }> {
  const { durability, secrets, facts, ids } = options;
  await makeSchema(connection, PARTITION_POSITIONS);
  for (const sql of TABLES) await connection.run(sql);
  const made = ids.uuid();
  const marks = secretMarks(secrets, made);
  await connection.run(
    "INSERT INTO platform.cluster (id, format, jwt_mark, key_mark) VALUES ($1, $2::int, $3, $4) ON CONFLICT DO NOTHING",
    [made, FORMAT, marks.jwt, marks.key],
  );
  const { rows } = await connection.run("SELECT id, format::text, jwt_mark, key_mark FROM platform.cluster");
  const [row] = rows;
  const cluster = textOf(row, 0);
  if (Number(textOf(row, 1)) !== FORMAT)
    throw new NotOfThisCluster(`the cluster has format ${textOf(row, 1)}, and this version knows ${FORMAT}`);
  const own = secretMarks(secrets, cluster);
  if (own.jwt !== textOf(row, 2)) throw new NotOfThisCluster("PLATFORM_JWT_SECRET is another one than the cluster's");
  if (own.key !== textOf(row, 3)) throw new NotOfThisCluster("PLATFORM_SERVICE_KEY is another one than the cluster's");
  const problem = await durabilityProblem(connection, durability);
  if (problem !== null) throw new NotOfThisCluster(problem);
  await connection.run(
    `INSERT INTO platform.facts VALUES ($1, $2, $3)
     ON CONFLICT (node) DO UPDATE SET version = excluded.version, config = excluded.config`,
    [facts.node, facts.version, facts.config],
  );
  return { cluster };
}

/** Says why PostgreSQL is less durable than it has to be; null: it is as durable. */
export async function durabilityProblem(
  connection: PostgresConnection,
  durability: Durability,
): Promise<string | null> {
  if (durability === "single") return null;
  const { rows } = await connection.run("SELECT current_setting('synchronous_standby_names')");
  if (textOf(rows[0], 0) !== "") return null;
  return 'cluster.postgres has no standby that commits wait for: synchronous_standby_names is empty. Name one, or set cluster.durability to "single" where replication is below PostgreSQL, or one copy is enough';
}

/** Makes the partitions of the log behind its end. */
export async function makeRoom(connection: PostgresConnection): Promise<void> {
  const { rows } = await connection.run("SELECT position::text FROM platform.groups WHERE name = $1", [CORE]);
  await makePartitions(connection, Number(textOf(rows[0], 0)), PARTITION_POSITIONS);
}
