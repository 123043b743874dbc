import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  explain,
  makeSmallPartitions,
  readsItself,
  type TestCluster,
  type TestNode,
  testCluster,
} from "../../support/cluster/cluster.ts";
import { until } from "../../support/until.ts";

const CONFIG = `databases: {
  main: { tables: { notes: {
    schema: { title: { type: "string", required: true } },
    access: { read: true, insert: true, update: true, delete: true },
  } } },
  rare: { tables: { notes: {
    schema: { title: { type: "string", required: true } },
    access: { read: true, insert: true, update: true, delete: true },
  } } },
}`;
const NOTES = "/api/db/main/tables/notes";
const RARE = "/api/db/rare/tables/notes";
/** Positions of the partitions that are there before the first node starts: few, so that some are dropped soon. */
const PARTITION_POSITIONS = 20;

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await testCluster({
    config: CONFIG,
    nodes: 2,
    prepare: (postgres) => makeSmallPartitions(postgres, { positions: PARTITION_POSITIONS, upTo: 2_000 }),
  });
}, 120_000);
afterAll(() => cluster.stop(), 60_000);

/** Returns where the log begins, and where it ends. */
async function log(): Promise<{ base: number; first: number; end: number }> {
  const connection = await cluster.postgres.connect();
  const { rows } = await connection.run(
    "SELECT base::text, (SELECT min(position)::text FROM platform.log), position::text FROM platform.groups",
  );
  connection.close();
  const [base = 0, first = 0, end = 0] = (rows[0] ?? []).map((value) =>
    Number(new TextDecoder().decode(value ?? new Uint8Array())),
  );
  return { base, first, end };
}

async function write(node: TestNode, count: number): Promise<void> {
  for (let index = 0; index < count; index++)
    await until("it is written", async () => (await node.post(NOTES, { title: `${index}` })).status === 201);
}

const totalAt = async (node: TestNode, path: string): Promise<number> =>
  ((await node.get(path)).body as { total: number }).total;

/** Waits until a node answers from its own files, and these are the owner's. */
async function untilEqual(node: TestNode, owner: TestNode): Promise<void> {
  await until("it reads from its own files", () => readsItself(node, NOTES)).catch((cause: unknown) => {
    explain(false, [node]);
    throw cause;
  });
  for (const path of [NOTES, RARE]) {
    const total = await totalAt(owner, path);
    await until("it has what the owner has", async () => (await totalAt(node, path)) === total);
    expect(await readsItself(node, path)).toBe(true);
  }
}

/** Waits until the log begins behind a position. */
const untilTrimmed = (position: number): Promise<void> =>
  (async () => {
    for (let tries = 0; tries < 3; tries++)
      if (
        await until("old partitions are dropped", async () => (await log()).base >= position).then(
          () => true,
          () => false,
        )
      )
        return;
    explain(false, cluster.nodes);
    throw new Error(`the log begins behind ${(await log()).base}`);
  })();

test("[CLU102] [CLU103] what the object store has is dropped from the log, and a node that lacks it fetches copies", async () => {
  const owner = await cluster.owner();
  const other = cluster.nodes.find((node) => node !== owner)!;
  expect((await owner.post(RARE, { title: "once" })).status).toBe(201);
  await write(owner, 3 * PARTITION_POSITIONS);
  await untilTrimmed(PARTITION_POSITIONS - 1);
  await until("they are dropped whole, up to where the log begins", async () => {
    const { base, first, end } = await log();
    return base % PARTITION_POSITIONS === PARTITION_POSITIONS - 1 && first === base + 1 && base < end;
  });

  // A node without anything.
  const fresh = await cluster.add();
  await untilEqual(fresh, owner);

  // A node whose log was dropped while it was away.
  await other.kill("SIGKILL");
  const seen = (await log()).end;
  await write(owner, 3 * PARTITION_POSITIONS);
  await untilTrimmed(seen);
  await other.restart();
  await untilEqual(other, owner);

  // A node whose file is damaged.
  await fresh.kill("SIGKILL");
  writeFileSync(join(fresh.dataDirectory, "databases", "rare.db"), "no database");
  await fresh.restart();
  await untilEqual(fresh, owner);

  // One of them can be the owner.
  const total = await totalAt(owner, NOTES);
  await owner.kill("SIGKILL");
  await until("another node owns the group", async () => (await fresh.post(RARE, { title: "twice" })).status === 201);
  const latest = { headers: { "platform-consistency": "latest" } };
  expect(((await fresh.get(NOTES, latest)).body as { total: number }).total).toBe(total);
  expect(((await fresh.get(RARE, latest)).body as { total: number }).total).toBe(2);
}, 240_000);
