import { join } from "node:path";
import { temporaryDirectory, testPlatform } from "../../platform.ts";
import { clusterOf, type TestNode } from "../cluster.ts";
import { TestPostgres } from "../postgres.ts";
import { Link } from "./link.ts";

/** Timeout that only failing drills reach: two leases and a start. */
const DEADLINE_MS = 45_000;
const LOOK_MS = 50;

/** Waits until `condition` holds. Rejects, naming `what`, if it does not in time. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`Gave up waiting until ${what}`);
    await Bun.sleep(LOOK_MS);
  }
}

/** A node, and the networks between it and others. */
export interface DrillNode extends TestNode {
  /** Network from the node to PostgreSQL. */
  readonly toPostgres: Link;
  /** Network from the other nodes to this one. */
  readonly fromNodes: Link;
  /** Variables of its own. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Three nodes, a PostgreSQL with a synchronous standby, and networks that can fail. */
export class DrillCluster {
  readonly nodes: DrillNode[] = [];
  primary: TestPostgres;
  standby: TestPostgres | null;
  readonly #config: string;
  readonly #durability: "standby" | "single";
  readonly #objects = join(temporaryDirectory(), "objects");

  private constructor(config: string, primary: TestPostgres, standby: TestPostgres | null) {
    this.#config = config;
    this.#durability = standby === null ? "single" : "standby";
    this.primary = primary;
    this.standby = standby;
  }

  /** `config`: its members besides `cluster`, as source text. `hasStandby` false: PostgreSQL is alone, and `durability` is `single`. */
  static async start({
    config,
    nodes = 3,
    hasStandby = true,
  }: {
    config: string;
    nodes?: number;
    hasStandby?: boolean;
  }) {
    const primary = await TestPostgres.start();
    const standby = hasStandby ? await primary.standby("other") : null;
    if (standby !== null) await primary.setStandbyNames("other");
    const cluster = new DrillCluster(config, primary, standby);
    for (let index = 0; index < nodes; index++) await cluster.add();
    return cluster;
  }

  async add(): Promise<DrillNode> {
    const toPostgres = await Link.to(this.primary.port);
    const own = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    own.stop(true);
    const fromNodes = await Link.to(own.port);
    const nodeUrl = `http://127.0.0.1:${fromNodes.port}`;
    const environment = {
      CLUSTER_POSTGRES: `postgres://postgres@127.0.0.1:${toPostgres.port}/postgres`,
      CLUSTER_OBJECTS: this.#objects,
      NODE_URL: nodeUrl,
      NODE_LISTEN: `127.0.0.1:${own.port}`,
    };
    const platform = await testPlatform({
      config: `{ ${this.#config}, cluster: {
        postgres: process.env.CLUSTER_POSTGRES, objects: { folder: process.env.CLUSTER_OBJECTS },
        url: process.env.NODE_URL, listen: process.env.NODE_LISTEN, durability: "${this.#durability}",
      } }`,
      env: environment,
    });
    // The getters of a platform follow its restarts.
    const parts = { nodeUrl, toPostgres, fromNodes, environment };
    const node = Object.defineProperties(parts, Object.getOwnPropertyDescriptors(platform)) as typeof parts &
      typeof platform;
    this.nodes.push(node);
    return node;
  }

  /** Returns the node that owns the group, as PostgreSQL has it, with its epoch. Errors: there is none for long. */
  async owner(): Promise<{ node: DrillNode; others: DrillNode[]; epoch: number }> {
    let found: { node: DrillNode; epoch: number } | null = null;
    await eventually("a node owns the group", async () => {
      const [[url, epoch] = []] = await this.primary.sql("SELECT owner, epoch::text FROM platform.groups");
      const node = this.nodes.find(({ nodeUrl }) => nodeUrl === url);
      const check = node === undefined ? null : await clusterOf(node).catch(() => null);
      if (node !== undefined && check?.["role"] === "owner") found = { node, epoch: Number(epoch) };
      return found !== null;
    });
    // TypeScript does not follow assignments in closures.
    const { node, epoch } = found as unknown as { node: DrillNode; epoch: number };
    return { node, epoch, others: this.nodes.filter((other) => other !== node) };
  }

  /** Waits until the group has been taken since this epoch, and returns who has it. */
  async ownerAfter(epoch: number): Promise<{ node: DrillNode; others: DrillNode[]; epoch: number }> {
    await eventually("the group is taken", async () => {
      const [[now] = []] = await this.primary.sql("SELECT epoch::text FROM platform.groups").catch(() => [[]]);
      return Number(now) > epoch;
    });
    return this.owner();
  }

  /** Makes the standby the primary, to which the networks of these nodes lead from then on. */
  async promote(nodes: readonly DrillNode[]): Promise<void> {
    if (this.standby === null) throw new Error("there is no standby");
    await this.standby.promote();
    this.primary = this.standby;
    this.standby = null;
    await eventually("the standby is the primary", async () => {
      const rows = await this.primary.sql("SELECT pg_is_in_recovery()::text").catch(() => []);
      return rows[0]?.[0] === "false";
    });
    // It has no standby of its own yet: with its former names no commit would ever return.
    await this.primary.setStandbyNames("");
    for (const { toPostgres } of nodes) {
      toPostgres.target = this.primary.port;
      toPostgres.cut();
    }
  }

  /** Waits until every node that runs has applied all of the log. */
  async settled(): Promise<void> {
    await eventually("every node has all of the log", async () => {
      const rows = await this.primary.sql(
        "SELECT n.node FROM platform.nodes n, platform.groups g WHERE n.applied = g.position",
      );
      const there = new Set(rows.map(([node]) => node));
      return this.nodes.filter(({ process }) => process.exitCode === null).every(({ nodeUrl }) => there.has(nodeUrl));
    });
  }

  async stop(): Promise<void> {
    for (const node of this.nodes.toReversed()) {
      node.process.kill("SIGCONT");
      await node.kill("SIGKILL");
      await node.stop();
      await node.toPostgres.stop();
      await node.fromNodes.stop();
    }
    await this.standby?.kill();
    await this.primary.kill();
  }
}
