import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { clusterOf, explain, type TestCluster, type TestNode, testCluster } from "../../support/cluster/cluster.ts";
import { platformCommand, temporaryDirectory, testEnvironment, testPlatform } from "../../support/platform.ts";
import { until } from "../../support/until.ts";
import { restored } from "../backup/continuous-support.ts";

const CONFIG = `databases: { main: { tables: { notes: {
  schema: { title: { type: "string", required: true } },
  access: { read: true, insert: true, update: true, delete: true },
} } } }`;
const NOTES = "/api/db/main/tables/notes";

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await testCluster({ config: CONFIG, nodes: 2 });
}, 120_000);
afterAll(() => cluster.stop(), 60_000);

/** Returns the folder of the cluster's copies: its id is the only name in the object store. */
const placeOf = (): string =>
  join(cluster.environment["CLUSTER_OBJECTS"]!, readdirSync(cluster.environment["CLUSTER_OBJECTS"]!)[0]!);

/** Returns the titles of the notes in a data directory. */
function titlesIn(data: string): string[] {
  using sqlite = new Database(join(data, "databases", "main.db"), { readwrite: true });
  return sqlite
    .query<{ title: string }, []>("SELECT title FROM notes ORDER BY title")
    .all()
    .map(({ title }) => title);
}

async function write(node: TestNode, title: string): Promise<void> {
  await until(`"${title}" is written`, async () => (await node.post(NOTES, { title })).status === 201);
}

/** Restores the newest state again and again until it has these titles. */
async function untilStored(titles: readonly string[]): Promise<void> {
  let found: string[] = [];
  await until("the object store has them", async () => {
    // Nothing may be there yet.
    found = await (async () => titlesIn(await restored(placeOf())))().catch(() => []);
    return JSON.stringify(found) === JSON.stringify([...titles].sort());
  }).catch((cause: unknown) => {
    explain(false, cluster.nodes);
    throw new Error(`found ${found}`, { cause });
  });
}

test("[CLU100] the object store has what the log has, also behind a takeover, and says so on each node", async () => {
  const owner = await cluster.owner();
  await write(owner, "one");
  await write(owner, "two");
  await untilStored(["one", "two"]);
  for (const node of cluster.nodes)
    await until("each node says when the last copy was made", async () => {
      const { objects } = (await clusterOf(node)) as { objects: { ok: boolean; lastCopyAt: string | null } };
      return objects.ok && objects.lastCopyAt !== null;
    });

  await owner.kill("SIGKILL");
  const other = cluster.nodes.find((node) => node !== owner)!;
  await write(other, "three");
  await untilStored(["one", "three", "two"]);
  const { objects } = (await clusterOf(other)) as { objects: unknown };
  expect(objects).toEqual({ ok: true, lastCopyAt: expect.any(String), message: null });
}, 120_000);

test("[CLU105] a restore of a cluster has what its log has, also what no object store got, without any node", async () => {
  const node = cluster.nodes.at(-1)!;
  await write(node, "four");
  await write(node, "five");
  // At once: what was written last is in the log alone.
  for (const one of cluster.nodes) await one.kill("SIGKILL");
  const data = join(temporaryDirectory(), "copy");
  const child = Bun.spawn([...platformCommand(), "restore", "--config", node.configFile, "--data", data], {
    env: testEnvironment({ ...cluster.environment, NODE_URL: node.nodeUrl }),
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [code, err] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  expect([code, err]).toEqual([0, expect.stringContaining("what the log has since")]);
  expect(titlesIn(data)).toEqual(["five", "four", "one", "three", "two"]);
  const single = await testPlatform({ config: `{ ${CONFIG} }`, data });
  try {
    expect(((await single.get(NOTES)).body as { total: number }).total).toBe(5);
    expect((await single.post(NOTES, { title: "alone" })).status).toBe(201);
  } finally {
    await single.stop();
  }
}, 120_000);
