import { expect, test } from "bun:test";
import { cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { begin, DRILL_MS, endDrills, struck, writeMore } from "../support/cluster/drill/drill.ts";
import type { DrillNode } from "../support/cluster/drill/drill-cluster.ts";
import { judge } from "../support/cluster/drill/verdict.ts";
import { temporaryDirectory } from "../support/platform.ts";
import { random, testSeed } from "../support/random.ts";

// Faults of the nodes' disks, under a load whose every answer is checked.

endDrills();
const seed = testSeed(1);
const chance = random(seed);

/** Takes away what was not synced: ends of WALs, at any byte. Returns how much. */
function loseUnsynced({ dataDirectory }: DrillNode): number {
  let lost = 0;
  for (const path of new Bun.Glob("**/*-wal").scanSync({ cwd: dataDirectory })) {
    const file = join(dataDirectory, path);
    const { size } = statSync(file);
    const left = Math.floor(size * chance.next());
    truncateSync(file, left);
    rmSync(file.replace(/-wal$/, "-shm"), { force: true });
    lost += size - left;
  }
  return lost;
}

test(
  `[CLU135] all nodes lose power at once, and what their disks have not synced (seed ${seed})`,
  async () => {
    const [cluster, load] = await begin();
    await Promise.all(cluster.nodes.map((node) => node.kill("SIGKILL")));
    for (const node of cluster.nodes) expect(loseUnsynced(node)).toBeGreaterThan(0);
    await struck(load, "no answer");
    await Promise.all(cluster.nodes.map((node) => node.restart()));
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  "[CLU136] the owner's disk is lost, and a follower's is put back to an old copy",
  async () => {
    const [cluster, load] = await begin();
    const { node, others, epoch } = await cluster.owner();
    const [follower] = others;
    if (follower === undefined) throw new Error("there is a follower");
    await follower.kill("SIGKILL");
    const old = join(temporaryDirectory(), "data");
    cpSync(follower.dataDirectory, old, { recursive: true });
    await follower.restart();
    await writeMore(load);
    await Promise.all([node.kill("SIGKILL"), follower.kill("SIGKILL")]);
    rmSync(node.dataDirectory, { recursive: true });
    rmSync(follower.dataDirectory, { recursive: true });
    cpSync(old, follower.dataDirectory, { recursive: true });
    await Promise.all([node.restart(), follower.restart()]);
    expect((await cluster.ownerAfter(epoch)).node).toBe(others[1] as DrillNode);
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  `[CLU137] a follower is killed, and a byte of its WAL is flipped (seed ${seed})`,
  async () => {
    const [cluster, load] = await begin();
    const { others } = await cluster.owner();
    const [follower] = others;
    if (follower === undefined) throw new Error("there is a follower");
    await follower.kill("SIGKILL");
    const wal = join(follower.dataDirectory, "databases/main.db-wal");
    const bytes = readFileSync(wal);
    const at = Math.floor(bytes.byteLength * (0.2 + 0.6 * chance.next()));
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(wal, bytes);
    rmSync(wal.replace(/-wal$/, "-shm"), { force: true });
    await follower.restart();
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 3 });
  },
  DRILL_MS,
);
