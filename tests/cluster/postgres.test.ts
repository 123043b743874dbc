import { expect, test } from "bun:test";
import { clusterOf } from "../support/cluster/cluster.ts";
import { begin, DRILL_MS, endDrills, ended, struck, writeMore } from "../support/cluster/drill/drill.ts";
import { eventually } from "../support/cluster/drill/drill-cluster.ts";
import { judge } from "../support/cluster/drill/verdict.ts";

// Faults of PostgreSQL, under a load whose every answer is checked.

endDrills();

test(
  "[CLU129] PostgreSQL is killed, and its synchronous standby is promoted",
  async () => {
    const [cluster, load] = await begin();
    await cluster.primary.kill();
    await struck(load, /^503/);
    await cluster.promote(cluster.nodes);
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  "[CLU130] two primaries live: the former one is reached by the owner alone",
  async () => {
    const [cluster, load] = await begin();
    const { node, others, epoch } = await cluster.owner();
    const former = cluster.primary;
    await cluster.promote(others);
    await struck(load, /^503/);
    const next = await cluster.ownerAfter(epoch);
    expect(next.node).not.toBe(node);
    await writeMore(load);
    node.toPostgres.target = cluster.primary.port;
    node.toPostgres.cut();
    await former.kill();
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  "[CLU131] a standby is taken away while commits wait for it, and then its name",
  async () => {
    const [cluster, load] = await begin();
    await cluster.standby?.kill();
    await struck(load, /unknown_outcome/);
    await cluster.primary.setStandbyNames("");
    await writeMore(load);
    const { node } = await cluster.owner();
    await eventually("the health is not ok", async () => (await clusterOf(node))["ok"] === false);
    await cluster.standby?.run();
    await cluster.primary.setStandbyNames("other");
    await eventually("the health is ok again", async () => (await clusterOf(node))["ok"] === true);
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  "[CLU132] a wait for the standby is cancelled again and again: what is visible has not been replicated",
  async () => {
    const [cluster, load] = await begin();
    await cluster.standby?.kill();
    let cancelled = 0;
    for (let round = 0; round < 20; round++) {
      const rows = await cluster.primary.sql(
        "SELECT pg_cancel_backend(pid)::text FROM pg_stat_activity WHERE application_name LIKE 'platform %' AND wait_event = 'SyncRep'",
      );
      cancelled += rows.length;
      await Bun.sleep(200);
    }
    expect(cancelled).toBeGreaterThan(0);
    await cluster.standby?.run();
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  "[CLU133] PostgreSQL is away for longer than a lease",
  async () => {
    const [cluster, load] = await begin();
    await cluster.primary.kill();
    await struck(load, "503 stale");
    await cluster.primary.run();
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  "[CLU134] PostgreSQL is slow",
  async () => {
    const [cluster, load] = await begin();
    for (const { toPostgres } of cluster.nodes) toPostgres.delayMs = 250;
    const { epoch } = await cluster.owner();
    const before = ended(load, /^503/);
    await writeMore(load);
    expect([(await cluster.owner()).epoch, ended(load, /^503/) - before]).toEqual([epoch, 0]);
    for (const { toPostgres } of cluster.nodes) toPostgres.delayMs = 0;
    await writeMore(load);
    await judge(cluster, load);
  },
  DRILL_MS,
);
