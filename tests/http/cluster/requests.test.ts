import { afterAll, beforeAll, expect, test } from "bun:test";
import { readsItself, type TestCluster, testCluster } from "../../support/cluster/cluster.ts";
import { until } from "../../support/until.ts";

// What the owner knows of requests that other nodes answer.

const CONFIG = `databases: { main: { tables: { notes: { schema: { title: { type: "string" } }, access: { read: true } } } } }`;
const NOTES = "/api/db/main/tables/notes";
const COUNTED = /^platform_http_requests_total\{area="db",method="GET",status="2xx"\} (\d+)$/m;

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await testCluster({ config: CONFIG, nodes: 2 });
}, 120_000);
afterAll(() => cluster.stop(), 60_000);

test("[CLU97] what a follower answers is counted, whichever node is asked for the metrics", async () => {
  const owner = await cluster.owner();
  const follower = cluster.nodes.find((node) => node !== owner)!;
  await until("it forwards no read", () => readsItself(follower, NOTES));
  for (let index = 0; index < 25; index++) expect((await follower.get(NOTES)).status).toBe(200);
  for (const node of cluster.nodes)
    await until("all of them are counted", async () => {
      const text = await (await node.service.fetch("/metrics")).text();
      return Number(COUNTED.exec(text)?.[1] ?? 0) >= 26;
    });
}, 60_000);
