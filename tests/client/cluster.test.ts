import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient, memoryStore } from "../../src/client/index.ts";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { clusterOf, explain, type TestCluster, type TestNode, testCluster } from "../support/cluster/cluster.ts";
import { operate } from "../support/cluster/operate.ts";
import { type SignedIn, signIn } from "../support/sign-in.ts";
import { until } from "../support/until.ts";

// Our client at the nodes of a cluster: it goes on by itself whatever happens to the owner.

const CONFIG = `databases: { main: { tables: { notes: {
  schema: { title: { type: "string", required: true } },
  access: { read: true, insert: true, update: true, delete: true },
} } } }`;
const NOTES = "/api/db/main/tables/notes";

let cluster: TestCluster;
let user: SignedIn;
beforeAll(async () => {
  cluster = await testCluster({ config: CONFIG, nodes: 3 });
  user = await signIn(cluster.nodes[0]!);
}, 120_000);
afterAll(() => cluster.stop(), 60_000);

const followers = async (): Promise<TestNode[]> => {
  const owner = await cluster.owner();
  return cluster.nodes.filter((node) => node !== owner);
};

/** Writes a note through a node. Returns its id. */
async function write(node: TestNode, title: string): Promise<string> {
  const key = crypto.randomUUID();
  let id: string | null = null;
  await until("the note is written", async () => {
    const headers = { "idempotency-key": key };
    const answer = await node.service.post<{ id: string }>(NOTES, { title }, { headers }).catch(() => null);
    if (answer?.status === 201) id = answer.body.id;
    return id !== null;
  });
  return id ?? "";
}

/** A client of ours at a node, whose query follows all notes, and what its sockets were told. */
async function following(node: TestNode) {
  const added: string[] = [];
  const resyncs: JsonObject[] = [];
  const codes: number[] = [];
  class NotedSocket extends WebSocket {
    constructor(url: string) {
      super(url);
      this.addEventListener("message", ({ data }) => {
        const message = JSON.parse(String(data)) as JsonObject;
        if (message["type"] === "db_change" && message["changeType"] === "added") added.push(String(message["docId"]));
        if (message["resync"] === true || message["type"] === "resync") resyncs.push(message);
      });
      this.addEventListener("close", ({ code }) => codes.push(code));
    }
  }
  const client = createClient({ url: node.url, store: memoryStore(), webSocket: NotedSocket });
  const { email, password } = user;
  await client.auth.signIn({ email, password });
  const live = client.db("main").table("notes").sort("createdAt", "desc").limit(1_000).live();
  // Who has no listener is forgotten after a while.
  live.subscribe(() => {});
  await until("the query is live", () => live.status === "live");
  return { client, live, added, resyncs, codes };
}

/** Writes through nodes until told to stop. Returns the ids of what was acknowledged. */
function writing(nodes: readonly TestNode[]) {
  const ids: string[] = [];
  let isOver = false;
  const done = nodes.map(async (node) => {
    while (!isOver) ids.push(await write(node, "under way"));
  });
  return {
    ids,
    async end(): Promise<string[]> {
      isOver = true;
      await Promise.all(done);
      return ids;
    },
  };
}

type Following = Awaited<ReturnType<typeof following>>;

/** Expects that clients show all notes, and were told of none twice. */
async function expectWhole(clients: readonly Following[], written: readonly string[]): Promise<void> {
  for (const { live, added } of clients) {
    expect(new Set(added).size).toBe(added.length);
    await until("its query shows all of them", () => {
      const shown = new Set(live.items.map(({ id }) => id));
      return written.every((id) => shown.has(id));
    });
  }
}

test("[CLU95] clients of all nodes are told of each change once while the group moves", async () => {
  const owner = await cluster.owner();
  const [one] = await followers();
  const clients = await Promise.all(cluster.nodes.map(following));
  const load = writing(cluster.nodes);
  await until("something is written", () => load.ids.length > 20);
  const moved = await operate(cluster, "move", "--to", one!.nodeUrl);
  expect([moved.code, moved.err]).toEqual([0, ""]);
  const before = load.ids.length;
  await until("the writes go on", () => load.ids.length > before + 20);
  const written = await load.end();
  await until("the former owner follows", async () => (await clusterOf(owner))["role"] === "follower");
  for (const { added, resyncs, codes } of clients) {
    await until("it has been told of all notes", () => new Set(added).size >= written.length).catch(() => {
      explain(false, cluster.nodes);
    });
    expect([resyncs, codes]).toEqual([[], [1001]]);
    expect(added.toSorted()).toEqual(written.toSorted());
  }
  await expectWhole(clients, written);
  for (const { client } of clients) client.close();
}, 90_000);

test("[CLU95] clients of the other nodes show everything, and are told of nothing twice, when the owner is killed", async () => {
  const owner = await cluster.owner();
  const others = await followers();
  const clients = await Promise.all(others.map(following));
  const load = writing(others);
  await until("something is written", () => load.ids.length > 20);
  await owner.kill("SIGKILL");
  cluster.nodes.splice(cluster.nodes.indexOf(owner), 1);
  const before = load.ids.length;
  await until("the writes go on", () => load.ids.length > before + 20);
  const written = await load.end();
  await expectWhole(clients, written);
  for (const { client } of clients) client.close();
  await cluster.add();
}, 90_000);
