import { expect, test } from "bun:test";
import { clusterOf } from "../support/cluster/cluster.ts";
import { DrillClient } from "../support/cluster/drill/asking.ts";
import {
  begin,
  DRILL_MS,
  endDrills,
  expectNoDoubt,
  OVER_LEASE_MS,
  struck,
  writeMore,
} from "../support/cluster/drill/drill.ts";
import { eventually } from "../support/cluster/drill/drill-cluster.ts";
import { SECRETS } from "../support/cluster/drill/load.ts";
import { judge } from "../support/cluster/drill/verdict.ts";
import { platformCommand, testEnvironment } from "../support/platform.ts";

// Faults of nodes and of the networks between them, under a load whose every answer is checked.

endDrills();
/** The time for which an owner's appends are on their way before it is killed: less than after which it would answer 503. */
const HELD_MS = 1_500;
const SESSIONS = 4;

test(
  "[CLU121] an owner is killed, and comes back",
  async () => {
    const [cluster, load] = await begin();
    const { node, epoch } = await cluster.owner();
    // What it has committed is on its way to the log, and never comes there.
    node.toPostgres.hold("toTarget");
    await Bun.sleep(HELD_MS);
    await node.kill("SIGKILL");
    node.toPostgres.cut();
    node.toPostgres.release();
    expect((await cluster.ownerAfter(epoch)).node).not.toBe(node);
    await struck(load, /^(?:503|no answer)/);
    await writeMore(load);
    await node.restart();
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 3 });
  },
  DRILL_MS,
);

test(
  "[CLU122] an owner is paused for longer than its lease, and goes on",
  async () => {
    const [cluster, load] = await begin();
    const { node, epoch } = await cluster.owner();
    node.process.kill("SIGSTOP");
    const next = await cluster.ownerAfter(epoch);
    expect(next.node).not.toBe(node);
    await writeMore(load);
    node.process.kill("SIGCONT");
    await eventually(
      "the former owner follows",
      async () => (await clusterOf(node).catch(() => null))?.["role"] === "follower",
    );
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 3 });
  },
  DRILL_MS,
);

test(
  "[CLU123] an owner is cut from PostgreSQL alone, with a statement on its way",
  async () => {
    const [cluster, load] = await begin();
    const { node, epoch } = await cluster.owner();
    node.toPostgres.hold("toTarget", "toClient");
    await struck(load, /^503/);
    const next = await cluster.ownerAfter(epoch);
    expect(next.node).not.toBe(node);
    await writeMore(load);
    // What was on its way arrives now, behind the takeover.
    node.toPostgres.release();
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 3 });
  },
  DRILL_MS,
);

test(
  "[CLU124] answers of PostgreSQL are lost on the way to the owner, and to one who would take over",
  async () => {
    const [cluster, load] = await begin();
    const { node, others, epoch } = await cluster.owner();
    node.toPostgres.hold("toClient");
    others[0]?.toPostgres.hold("toClient");
    await struck(load, /unknown_outcome/);
    const next = await cluster.ownerAfter(epoch);
    expect(next.node === others[1]).toBe(true);
    await writeMore(load).catch(() => {});
    for (const { toPostgres } of cluster.nodes) {
      toPostgres.cut();
      toPostgres.release();
    }
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  "[CLU125] an owner is cut from its followers alone",
  async () => {
    const [cluster, load] = await begin();
    const { node, epoch } = await cluster.owner();
    node.fromNodes.hold("toTarget", "toClient");
    await struck(load, /^(?:503|no answer)/, 3);
    await Bun.sleep(OVER_LEASE_MS);
    // It renews its lease: nobody takes what it owns.
    expect((await cluster.owner()).epoch).toBe(epoch);
    node.fromNodes.cut();
    node.fromNodes.release();
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  "[CLU126] a follower hangs while sessions end, and goes on",
  async () => {
    const [cluster, load] = await begin();
    const { others } = await cluster.owner();
    const before = load.history.endedSessions;
    others[0]?.process.kill("SIGSTOP");
    await Bun.sleep(OVER_LEASE_MS);
    others[0]?.process.kill("SIGCONT");
    await eventually("sessions end", () => load.history.endedSessions > before + 20);
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 3 });
  },
  DRILL_MS,
);

test(
  "[CLU138] a follower is cut from PostgreSQL while sessions end that it knows",
  async () => {
    const [cluster, load] = await begin();
    const { node, others } = await cluster.owner();
    const [follower] = others;
    if (follower === undefined) throw new Error("there is a follower");
    const client = new DrillClient(load.history.tally);
    const tokens: string[] = [];
    for (let count = 0; count < SESSIONS; count++) {
      const begun = await client.ask(node, "/api/auth/signin/anonymous", { method: "POST" });
      tokens.push(begun.body.accessToken);
    }
    const use = (token: string) => new DrillClient(load.history.tally).ask(follower, SECRETS, { token });
    for (const token of tokens)
      await eventually("the follower knows it", async () => (await use(token)).status === 200);
    follower.toPostgres.hold("toTarget", "toClient");
    const ended = await Promise.all(
      tokens.map(async (token) => {
        // It waits for the end of the follower's lease, for longer than other requests.
        const answer = await client.ask(node, "/api/auth/signout", {
          method: "POST",
          token,
          body: {},
          giveUpMs: 30_000,
        });
        const late = [await use(token), await use(token)];
        return [answer.status, late.filter(({ status }) => status === 200).length];
      }),
    );
    expect(ended).toEqual(tokens.map(() => [200, 0]));
    follower.toPostgres.cut();
    follower.toPostgres.release();
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 3 });
  },
  DRILL_MS,
);

test(
  "[CLU127] the group is moved to another node and back, and no request is lost",
  async () => {
    const [cluster, load] = await begin();
    const { node, others, epoch } = await cluster.owner();
    const before = new Map(load.history.tally.counts);
    for (const to of [others[0], node]) {
      const child = Bun.spawn(
        [...platformCommand(), "cluster", "move", "--to", to?.nodeUrl ?? "", "--config", node.configFile],
        {
          env: testEnvironment(node.environment),
          stdio: ["ignore", "ignore", "inherit"],
        },
      );
      expect(await child.exited).toBe(0);
      await writeMore(load);
    }
    expect((await cluster.owner()).epoch).toBeGreaterThanOrEqual(epoch + 2);
    expectNoDoubt(load, before);
    // Nothing is fetched anew.
    for (const { stderr } of cluster.nodes) expect(stderr()).not.toContain("a file is not as the log has it");
    await judge(cluster, load, { resyncsMax: 6 });
  },
  DRILL_MS,
);

test(
  "[CLU128] nodes join and leave, and one of them is killed meanwhile",
  async () => {
    const [cluster, load] = await begin();
    const { others } = await cluster.owner();
    const joined = cluster.add();
    await others[0]?.kill("SIGKILL");
    await joined;
    await writeMore(load);
    expect(await others[1]?.kill("SIGTERM")).toBe(0);
    await Promise.all(others.map((node) => node.restart()));
    await writeMore(load);
    await judge(cluster, load, { resyncsMax: 3 });
  },
  DRILL_MS,
);
