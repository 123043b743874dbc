import { type Clock, pause } from "../../../kernel/clock.ts";
import { readStored } from "../objects/stored-row.ts";
import type { PostgresConnection } from "../postgres/connection.ts";
import { CORE } from "../postgres/schema.ts";
import type { Row } from "../postgres/wire.ts";
import { LEASE_MS } from "../protocol/limits.ts";
import { MOVE_LOOK_MS, MOVE_MAX_MS, WATCH_MS } from "./limits.ts";

// What operators ask of a cluster, of PostgreSQL itself: it has to be answered where no node runs.

export interface ClusterStatus {
  nodes: NodeStatus[];
  groups: { name: string; owner: string | null; epoch: number }[];
  log: { position: number; bytes: number; stopped: boolean; standbyNames: string };
  /** Time of the last full copy in the object store; null: there is none. */
  lastCopyAt: string | null;
}

export interface NodeStatus {
  url: string;
  live: boolean;
  role: "owner" | "follower";
  /** Positions of the log that the node has not applied. */
  behind: number;
  version: string | null;
  config: string | null;
}

const decoder = new TextDecoder();
const textsOf = (row: Row): string[] => row.map((value) => decoder.decode(value ?? new Uint8Array(0)));

interface Seen {
  incarnation: string;
  counter: number;
  applied: number;
}

async function nodesOf(connection: PostgresConnection): Promise<Map<string, Seen>> {
  const { rows } = await connection.run("SELECT node, incarnation, counter::text, applied::text FROM platform.nodes");
  return new Map(
    rows
      .map(textsOf)
      .map(([node = "", incarnation = "", counter, applied]) => [
        node,
        { incarnation, counter: Number(counter), applied: Number(applied) },
      ]),
  );
}

/** Returns the state of the cluster. A node is live that renews its lease meanwhile. Errors: there is no cluster. */
export async function clusterStatus(connection: PostgresConnection, clock: Clock): Promise<ClusterStatus> {
  const before = await nodesOf(connection);
  await pause(clock, WATCH_MS);
  const after = await nodesOf(connection);
  const facts = await connection.run("SELECT node, version, config FROM platform.facts");
  const group = await connection.run(
    `SELECT owner, epoch::text, position::text, stopped::text,
      (SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::text FROM pg_inherits WHERE inhparent = 'platform.log'::regclass),
      current_setting('synchronous_standby_names')
     FROM platform.groups WHERE name = $1`,
    [CORE],
  );
  const { lastCopyAt } = (await readStored(connection)) ?? { lastCopyAt: null };
  const [owner = "", epoch, position, stopped, bytes, standbyNames = ""] = textsOf(group.rows[0] ?? []);
  const known = new Map(facts.rows.map(textsOf).map(([node = "", ...rest]) => [node, rest]));
  const nodes = [...after].map(([url, { counter, applied, incarnation }]): NodeStatus => {
    const [version = null, config = null] = known.get(url) ?? [];
    const former = before.get(url);
    const live = former !== undefined && (former.counter !== counter || former.incarnation !== incarnation);
    const role = url === owner ? "owner" : "follower";
    return { url, live, role, behind: Math.max(0, Number(position) - applied), version, config };
  });
  return {
    nodes: nodes.toSorted((one, other) => (one.url < other.url ? -1 : 1)),
    groups: [{ name: CORE, owner: owner === "" ? null : owner, epoch: Number(epoch) }],
    log: { position: Number(position), bytes: Number(bytes), stopped: stopped === "true", standbyNames },
    lastCopyAt: lastCopyAt === null ? null : new Date(lastCopyAt).toISOString(),
  };
}

/** Returns the node that owns core; null: none does. */
export async function ownerOf(connection: PostgresConnection): Promise<string | null> {
  const { rows } = await connection.run("SELECT owner FROM platform.groups WHERE name = $1", [CORE]);
  const [owner = ""] = textsOf(rows[0] ?? []);
  return owner === "" ? null : owner;
}

/** Waits until a node is the owner. Returns null, or what has come of it. */
export async function movedTo(connection: PostgresConnection, node: string, clock: Clock): Promise<string | null> {
  const givesUpAt = performance.now() + MOVE_MAX_MS;
  for (;;) {
    const owner = await ownerOf(connection);
    if (owner === node) return null;
    if (performance.now() > givesUpAt) return `${owner ?? "nobody"} is the owner`;
    await pause(clock, MOVE_LOOK_MS);
  }
}

/**
 * Takes a node out of the cluster that runs no more: nobody waits for it any longer. Returns null, or why it cannot be. Errors: PostgreSQL
 * does not answer.
 */
export async function leaveCluster(connection: PostgresConnection, node: string, clock: Clock): Promise<string | null> {
  const before = (await nodesOf(connection)).get(node);
  if (before === undefined) return `${node} is no node of the cluster`;
  await pause(clock, LEASE_MS);
  const { rows } = await connection.run(
    "DELETE FROM platform.nodes WHERE node = $1 AND incarnation = $2 AND counter = $3::bigint RETURNING 1",
    [node, before.incarnation, before.counter],
  );
  if (rows.length === 0) return `${node} is live: stop its server first, which hands over what it owns`;
  await connection.run("DELETE FROM platform.facts WHERE node = $1", [node]);
  return null;
}

/**
 * Goes on from the end of a log that has lost what was acknowledged: a new history begins. Returns null, or why it cannot. Errors:
 * PostgreSQL does not answer.
 */
export async function acceptLoss(connection: PostgresConnection, position: number): Promise<string | null> {
  const { rows } = await connection.run(
    `UPDATE platform.groups SET history = history + 1, stopped = false, owner = '', incarnation = ''
     WHERE name = $1 AND stopped AND position = $2::bigint RETURNING 1`,
    [CORE, position],
  );
  if (rows.length > 0) return null;
  const { rows: now } = await connection.run(
    "SELECT position::text, stopped::text FROM platform.groups WHERE name = $1",
    [CORE],
  );
  const [end, stopped] = textsOf(now[0] ?? []);
  return stopped === "true"
    ? `the log ends at position ${end}, not at ${position}`
    : "the group is not stopped: nothing is lost";
}
