import { afterAll, beforeAll, expect, test } from "bun:test";
import { clusterOf, explain, readsItself, type TestCluster, testCluster } from "../../support/cluster/cluster.ts";
import { operate } from "../../support/cluster/operate.ts";
import { until } from "../../support/until.ts";

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

const codeOf = (body: unknown): string | undefined =>
  (body as { data?: { cluster?: { code: string } } }).data?.cluster?.code;

test("[CLU91] operators see the nodes, move what the owner owns, and take out a node that runs no more", async () => {
  const owner = await cluster.owner();
  const other = cluster.nodes.find((node) => node !== owner)!;
  const status = await operate(cluster, "status", "--json");
  expect([status.code, status.err]).toEqual([0, ""]);
  const shown = JSON.parse(status.out);
  expect(shown.groups).toEqual([{ name: "core", owner: owner.nodeUrl, epoch: expect.any(Number) }]);
  expect(shown.nodes).toHaveLength(2);
  expect(shown.nodes.every(({ live }: { live: boolean }) => live)).toBe(true);
  expect(shown.log.stopped).toBe(false);

  const nowhere = await operate(cluster, "move", "--to", "http://127.0.0.1:1");
  expect([nowhere.code, nowhere.err.includes("no live node")]).toEqual([1, true]);
  const moved = await operate(cluster, "move", "--to", other.nodeUrl);
  expect([moved.code, moved.err]).toEqual([0, ""]);
  expect((await clusterOf(other))["role"]).toBe("owner");
  await until("the former owner follows", async () => (await clusterOf(owner))["role"] === "follower");
  const written = await owner.post(NOTES, { title: "through the former owner" });
  expect(written.status).toBe(201);
  const { id } = written.body as { id: string };
  await until("the former owner has it", async () => (await owner.get(`${NOTES}/${id}`)).status === 200);
  await until("the former owner reads from its own files", () => readsItself(owner, NOTES));
  expect((await operate(cluster, "move", "--to", owner.nodeUrl)).code).toBe(0);
  await until("the other one does, too", () => readsItself(other, NOTES));

  const live = await operate(cluster, "leave", "--node", other.nodeUrl);
  expect([live.code, live.err.includes("is live")]).toEqual([1, true]);
  const lossless = await operate(cluster, "accept-loss", "--at", "1");
  expect([lossless.code, lossless.err.includes("nothing is lost")]).toEqual([1, true]);
  const third = await cluster.add();
  await third.kill("SIGKILL");
  cluster.nodes.pop();
  const left = await operate(cluster, "leave", "--node", third.nodeUrl);
  expect([left.code, left.err]).toEqual([0, ""]);
  expect(JSON.parse((await operate(cluster, "status", "--json")).out).nodes).toHaveLength(2);
}, 120_000);

test("[CLU93] an owner that is stopped for longer than its lease is followed, and then follows", async () => {
  const owner = await cluster.owner();
  const other = cluster.nodes.find((node) => node !== owner)!;
  owner.process.kill("SIGSTOP");
  try {
    await until("the other node owns the group", async () => (await clusterOf(other))["role"] === "owner");
    const written = await other.post(NOTES, { title: "meanwhile" });
    explain(written.status === 201, cluster.nodes);
    expect([written.status, written.body]).toEqual([201, expect.anything()]);
  } finally {
    owner.process.kill("SIGCONT");
  }
  // Whatever it answers now, it is what the owner of today has.
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => owner.get(NOTES, { headers: { "platform-consistency": "latest" } })),
  );
  const { body } = await other.get(NOTES);
  for (const answer of answers)
    if (answer.status === 200) expect((answer.body as { total: number }).total).toBe((body as { total: number }).total);
  await until(
    "the former owner follows",
    async () => (await clusterOf(owner).catch(() => null))?.["role"] === "follower",
  );
  await until("it reads from its own files", () => readsItself(owner, NOTES)).catch((cause: unknown) => {
    explain(false, [owner]);
    throw cause;
  });
  await until(
    "it takes writes again, for the owner",
    async () => (await owner.post(NOTES, { title: "after" })).status === 201,
  );
}, 120_000);

test("[CLU92] without PostgreSQL writes are refused in time, and go on when it is back", async () => {
  const before = await cluster.nodes[0]!.post(NOTES, { title: "before" });
  expect(before.status).toBe(201);
  await cluster.postgres.kill();
  for (const node of cluster.nodes) {
    const startedAt = performance.now();
    const answer = await node.post(NOTES, { title: "without" });
    const tookMs = performance.now() - startedAt;
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(["no_owner", "unknown_outcome", "stale"]).toContain(codeOf(answer.body) ?? "");
    // The promise is 4 s; a busy machine gets one more.
    expect(tookMs).toBeLessThan(5_000);
  }
  await until("no node answers reads", async () => {
    const answers = await Promise.all(cluster.nodes.map((node) => node.get(NOTES)));
    return answers.every(({ status, body }) => status === 503 && codeOf(body) !== undefined);
  });
  for (const node of cluster.nodes) expect((await node.get("/api/health")).status).toBe(503);
  await cluster.postgres.run();
  for (const node of cluster.nodes)
    await until("writes go on", async () => (await node.post(NOTES, { title: "after" })).status === 201);
  const { id } = before.body as { id: string };
  for (const node of cluster.nodes)
    await until("what was written before is there", async () => (await node.get(`${NOTES}/${id}`)).status === 200);
}, 120_000);

test("[CLU90] a start with other secrets, without them, with another node's URL or too little durability ends with 1", async () => {
  const [node] = cluster.nodes;
  const attempts: [what: string, env: Record<string, string>, words: string][] = [
    ["another JWT secret", { PLATFORM_JWT_SECRET: "another secret of more than 32 characters" }, "PLATFORM_JWT_SECRET"],
    ["another key", { PLATFORM_SERVICE_KEY: "another-key-0123456789abcdefghij" }, "PLATFORM_SERVICE_KEY"],
    ["no secret", { PLATFORM_JWT_SECRET: "" }, "PLATFORM_JWT_SECRET must be set"],
    ["a standby that is not there", { CLUSTER_DURABILITY: "standby" }, "synchronous_standby_names"],
    ["another node's URL", { NODE_URL: node!.nodeUrl }, "another live node"],
  ];
  const starts = attempts.map(async ([what, env, words]) => {
    const failure = await cluster.add(env).then(
      () => "it has started",
      (cause: unknown) => String(cause),
    );
    expect([what, failure.includes("ended with 1 "), failure.includes(words)]).toEqual([what, true, true]);
  });
  await Promise.all(starts);
}, 120_000);
