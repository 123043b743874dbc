import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import {
  clusterOf,
  explain,
  readsItself,
  type TestCluster,
  type TestNode,
  testCluster,
} from "../../support/cluster/cluster.ts";
import { until } from "../../support/until.ts";

const CONFIG = `
  databases: { main: { tables: { notes: {
    schema: { title: { type: "string", required: true } },
    access: { read: true, insert: true, update: true, delete: true },
  } } } },
  kv: { settings: {} }`;
const NOTES = "/api/db/main/tables/notes";
const POSITION = "platform-position";

const idsOf = (body: JsonValue): string[] => (body as { items: { id: string }[] }).items.map(({ id }) => id).toSorted();

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await testCluster({ config: CONFIG, nodes: 3 });
}, 120_000);
afterAll(() => cluster.stop(), 60_000);

const followers = async (): Promise<TestNode[]> => {
  const owner = await cluster.owner();
  return cluster.nodes.filter((node) => node !== owner);
};

describe("two followers and an owner", () => {
  test("[CLU84] a record that is written through any node is read on every node at once, by its position", async () => {
    for (const node of cluster.nodes) {
      const written = await node.post(NOTES, { title: "one" });
      expect(written.status).toBe(201);
      const position = written.headers.get(POSITION) ?? "";
      expect(position).not.toBe("");
      expect(position.length).toBeLessThanOrEqual(256);
      const { id } = written.body as { id: string };
      for (const other of cluster.nodes) {
        const read = await other.get(`${NOTES}/${id}`, { headers: { [POSITION]: position } });
        expect([read.status, (read.body as { id: string }).id]).toEqual([200, id]);
      }
    }
  });

  test("[CLU84] without a position, a key reads what it has just written through that node", async () => {
    const [follower] = await followers();
    for (let index = 0; index < 20; index++) {
      const { body } = await follower!.service.post(NOTES, { title: `${index}` });
      const read = await follower!.service.get(`${NOTES}/${(body as { id: string }).id}`);
      expect(read.status).toBe(200);
    }
  });

  test("[CLU84] latest is asked of the owner, another consistency is 400, and a position of elsewhere is ignored", async () => {
    for (const node of cluster.nodes) {
      const latest = await node.get(NOTES, { headers: { "platform-consistency": "latest" } });
      expect(latest.status).toBe(200);
      expect((await node.get(NOTES, { headers: { "platform-consistency": "any" } })).status).toBe(400);
      for (const position of ["x", "", "9".repeat(300), "a.0.zzzz", "-1"])
        expect((await node.get(NOTES, { headers: { [POSITION]: position } })).status).toBe(200);
      const far = `${latest.headers.get(POSITION)?.split(".").slice(0, 2).join(".")}.zzzzzz`;
      expect((await node.get(NOTES, { headers: { [POSITION]: far } })).status).toBe(200);
    }
  });

  test("[CLU85] a follower reads tables from its own files", async () => {
    for (const follower of await followers()) await until("it forwards no read", () => readsItself(follower, NOTES));
  });

  test("[CLU85] what a follower does not answer itself is the owner's: other areas, and what is refused", async () => {
    const [follower] = await followers();
    const put = await follower!.service.post("/api/kv/settings", { action: "set", key: "theme", value: "dark" });
    expect(put.status).toBe(200);
    for (const node of cluster.nodes) {
      const { body } = await node.service.post("/api/kv/settings", { action: "get", key: "theme" });
      expect(JSON.stringify(body)).toContain("dark");
    }
    expect((await follower!.get(`${NOTES}/01900000-0000-7000-8000-000000000000`)).status).toBe(404);
    expect((await follower!.post(NOTES, { title: 5 })).status).toBe(400);
  });

  test("[CLU86] the health of each node says who owns the group, who is there, and the log", async () => {
    const owner = await cluster.owner();
    for (const node of cluster.nodes) {
      let check = await clusterOf(node);
      await until("it has seen all nodes", async () => {
        check = await clusterOf(node);
        return (check["nodes"] as unknown[]).length === cluster.nodes.length;
      });
      expect(check["ok"]).toBe(true);
      expect(check["role"]).toBe(node === owner ? "owner" : "follower");
      const nodes = check["nodes"] as { url: string; live: boolean; role: string }[];
      expect(nodes.map(({ url }) => url).toSorted()).toEqual(cluster.nodes.map(({ nodeUrl }) => nodeUrl).toSorted());
      expect(nodes.filter(({ role, live }) => live && role === "owner").map(({ url }) => url)).toEqual([owner.nodeUrl]);
      expect(check["log"]).toMatchObject({ ok: true, durability: "single" });
    }
  });
});

/** Writes through some nodes until told to stop, and notes what was acknowledged and what failed. */
function writing(nodes: readonly TestNode[]) {
  const acknowledged: string[] = [];
  const failed: (string | number)[] = [];
  let isOver = false;
  const write = async (node: TestNode): Promise<void> => {
    while (!isOver) {
      const key = crypto.randomUUID();
      try {
        const answer = await node.service.post(NOTES, { title: key }, { headers: { "idempotency-key": key } });
        if (answer.status === 201) acknowledged.push((answer.body as { id: string }).id);
        else failed.push(`${answer.status} ${JSON.stringify(answer.body)}`);
      } catch (cause) {
        failed.push(String(cause));
        // A node that is gone refuses at once.
        isOver = true;
      }
    }
  };
  const done = nodes.map(write);
  return {
    acknowledged,
    failed,
    async end(): Promise<void> {
      isOver = true;
      await Promise.all(done);
    },
  };
}

async function allIds(node: TestNode): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | null = null; ; ) {
    const query: Record<string, string> = { limit: "500", ...(cursor === null ? {} : { after: cursor }) };
    const { body, status } = await node.get<JsonValue>(NOTES, { query, headers: { "platform-consistency": "latest" } });
    expect(status).toBe(200);
    const page = body as { items: { id: string }[]; cursor: string | null };
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.cursor;
    if (cursor === null) return ids;
  }
}

test("[CLU87] an owner that is stopped hands over: no request through the others fails", async () => {
  const owner = await cluster.owner();
  const others = await followers();
  const load = writing(others);
  await until(`something is written ${load.failed[0] ?? ""}`, () => load.acknowledged.length > 50);
  const before = load.acknowledged.length;
  expect(await owner.kill("SIGTERM")).toBe(0);
  await until("the writes go on", () => load.acknowledged.length > before + 50);
  await load.end();
  explain(load.failed.length === 0, [owner, ...others]);
  expect(load.failed).toEqual([]);
  cluster.nodes.splice(cluster.nodes.indexOf(owner), 1);
  for (const node of cluster.nodes) {
    const ids = new Set(await allIds(node));
    expect(load.acknowledged.filter((id) => !ids.has(id))).toEqual([]);
  }
  await cluster.add();
}, 60_000);

test("[CLU88] an owner that is killed is followed by another node, which has everything that was acknowledged, once", async () => {
  const owner = await cluster.owner();
  const others = await followers();
  const load = writing(others);
  await until(`something is written ${load.failed[0] ?? ""}`, () => load.acknowledged.length > 50);
  await owner.kill("SIGKILL");
  cluster.nodes.splice(cluster.nodes.indexOf(owner), 1);
  const before = load.acknowledged.length;
  await until("the writes go on", () => load.acknowledged.length > before + 50).catch((cause: unknown) => {
    explain(false, others);
    throw cause;
  });
  await load.end();
  const ids = await allIds(await cluster.owner());
  expect(new Set(ids).size).toBe(ids.length);
  const present = new Set(ids);
  expect(load.acknowledged.filter((id) => !present.has(id))).toEqual([]);
  expect(load.failed.filter((failure) => !/^503 .*"(?:no_owner|unknown_outcome)"/.test(String(failure)))).toEqual([]);
}, 90_000);

test("[CLU89] a node that joins later comes as a follower with the same records", async () => {
  const ids = (await allIds(await cluster.owner())).toSorted();
  const node = await cluster.add();
  await until("it has all records", async () => {
    const { body } = await node.get<JsonValue>(NOTES, { query: { perPage: 1 } });
    return (body as { total: number }).total === ids.length;
  });
  expect(
    idsOf((await node.get<JsonValue>(NOTES, { query: { perPage: 500 } })).body).every((id) => ids.includes(id)),
  ).toBe(true);
}, 60_000);
