import { join } from "node:path";
import { makePartitions } from "../../../src/server/cluster/postgres/partitions.ts";
import { makeSchema } from "../../../src/server/cluster/postgres/schema.ts";
import { removeDirectory } from "../children.ts";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../platform.ts";
import { until } from "../until.ts";
import { TestPostgres } from "./postgres.ts";

// Clusters under test: a real PostgreSQL, and nodes that are processes of the program under test.

/** One node, as a server is accessed, and its address for other nodes. */
export interface TestNode extends TestPlatform {
  readonly nodeUrl: string;
}

export interface TestCluster {
  readonly postgres: TestPostgres;
  readonly nodes: TestNode[];
  /** Variables of every node. */
  readonly environment: Readonly<Record<string, string>>;
  /** Starts another node. Rejects with its output if it does not start. */
  add(env?: Record<string, string>): Promise<TestNode>;
  /** Returns the node that owns the group, once one says so. */
  owner(): Promise<TestNode>;
  stop(): Promise<void>;
}

export interface TestClusterOptions {
  /** Members of the config besides `cluster`, as source text in an object. */
  config: string;
  nodes?: number;
  env?: Record<string, string>;
  /** Prepares PostgreSQL before the first node starts. */
  prepare?: (postgres: TestPostgres) => Promise<void>;
}

function freePort(): number {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  server.stop(true);
  return server.port;
}

/** Returns `checks.cluster` of a node's health. */
export async function clusterOf(node: TestPlatform): Promise<Record<string, unknown>> {
  const answer = await node.service.get("/api/health?full");
  // The health with its checks.
  return (answer.body as { checks: { cluster: Record<string, unknown> } }).checks.cluster;
}

/** Starts a cluster. Nodes start one after another, so the first one is the owner. */
export async function testCluster(options: TestClusterOptions): Promise<TestCluster> {
  const { config, nodes: count = 2, env = {}, prepare } = options;
  const postgres = await TestPostgres.start();
  await prepare?.(postgres);
  const objects = join(temporaryDirectory(), "objects");
  const nodes: TestNode[] = [];
  const source = `{ ${config}, cluster: {
    postgres: process.env.CLUSTER_POSTGRES, objects: { folder: process.env.CLUSTER_OBJECTS },
    url: process.env.NODE_URL, durability: process.env.CLUSTER_DURABILITY ?? "single",
  } }`;
  const environment = { ...env, CLUSTER_POSTGRES: postgres.url, CLUSTER_OBJECTS: objects };
  const add = async (own: Record<string, string> = {}): Promise<TestNode> => {
    const nodeUrl = own["NODE_URL"] ?? `http://127.0.0.1:${freePort()}`;
    const platform = await testPlatform({ config: source, env: { ...environment, NODE_URL: nodeUrl, ...own } });
    // The getters of a platform follow its restarts.
    const node = Object.defineProperties({ nodeUrl }, Object.getOwnPropertyDescriptors(platform)) as TestNode;
    nodes.push(node);
    return node;
  };
  const cluster: TestCluster = {
    postgres,
    nodes,
    environment,
    add,
    async owner() {
      let found: TestNode | undefined;
      await until("a node owns the group", async () => {
        for (const node of nodes) {
          const check = await clusterOf(node).catch(() => null);
          if (check?.["role"] === "owner") found = node;
        }
        return found !== undefined;
      });
      if (found === undefined) throw new Error("no node owns the group");
      return found;
    },
    async stop() {
      for (const node of nodes.toReversed()) await node.stop();
      await postgres.stop();
      removeDirectory(objects);
    },
  };
  for (let index = 0; index < count; index++) await add();
  return cluster;
}

/** Makes a log whose partitions have few positions, up to one behind which they are as usual: some are dropped soon. */
export async function makeSmallPartitions(
  postgres: TestPostgres,
  { positions, upTo }: { positions: number; upTo: number },
): Promise<void> {
  const connection = await postgres.connect();
  await makeSchema(connection, positions);
  await makePartitions(connection, upTo, positions);
  connection.close();
}

/** Whether a follower answers this read from its own files: it has forwarded nothing for it. */
export async function readsItself(node: TestPlatform, path: string): Promise<boolean> {
  const forwarded = async (): Promise<number> => {
    const { body } = await node.service.get("/api/health?full");
    // The health with its processes.
    return (body as { checks: { processes: { requests: number }[] } }).checks.processes[0]?.requests ?? 0;
  };
  const before = await forwarded();
  const { status } = await node.get(path);
  return status === 200 && (await forwarded()) === before;
}

/** Prints what the nodes have logged, where a test is about to fail. */
export function explain(isRight: boolean, nodes: readonly TestNode[]): void {
  if (isRight) return;
  for (const node of nodes)
    console.error(
      `--- ${node.nodeUrl}\n${node
        .stderr()
        .split("\n")
        .map((l) => l.slice(0, 600))
        .join("\n")}`,
    );
}
