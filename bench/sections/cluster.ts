import type { TestPostgres } from "../../tests/support/cluster/postgres.ts";
import {
  insert,
  MAKER,
  MAKERS,
  type Node,
  startAlone,
  startLog,
  startNode,
  subscribe,
  untilOwner,
} from "../cases/cluster.ts";
import { type Load, type LoadResult, runLoad } from "../support/load.ts";
import type { Running } from "../support/processes.ts";
import { processorTime } from "../support/processor-time.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, milliseconds, perSecond, quantile } from "../support/statistics.ts";

const ROUNDS = 3;
const ROUND_S = 3;
const INSERT_TARGET = 0.9;
const INSERT_P99_TARGET = 2;
const READ_TARGET = 0.95;
const APPLY_TARGET = 0.5;
const SOCKET_TARGET_MS = 10;
const FAILOVER_TARGET_MS = 12_000;
const HANDOVER_TARGET_MS = 500;
const CHANGES = 300;
const HANDOVERS = 5;
const PROBE_MS = 5;
const NO_FLOOR = { floor: null, ratio: null };

interface Servers {
  alone: Running;
  owner: Node;
  follower: Node;
}

const insertInto = ({ url }: Running): Load => ({ url: url + MAKERS, method: "POST", body: JSON.stringify(MAKER) });

async function inserts(bench: Bench, { alone, owner, follower }: Servers): Promise<Result[]> {
  bench.note("inserts at an owner");
  const directory = bench.directory("load");
  const rounds: { alone: LoadResult; owner: LoadResult; ownerUs: number; followerUs: number }[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const before = { owner: 0, follower: 0 };
    const onWarm = (): void => {
      before.owner = processorTime(owner.pid);
      before.follower = processorTime(follower.pid);
    };
    const ofAlone = await runLoad(insertInto(alone), { seconds: ROUND_S, directory });
    const ofOwner = await runLoad(insertInto(owner), { seconds: ROUND_S, directory, onWarm });
    const us = (node: Node, was: number): number => (processorTime(node.pid) - was) / ofOwner.requests;
    rounds.push({
      alone: ofAlone,
      owner: ofOwner,
      ownerUs: us(owner, before.owner),
      followerUs: us(follower, before.follower),
    });
  }
  // Drops the first round, in which all are still being compiled.
  rounds.shift();
  const of = (value: (round: (typeof rounds)[number]) => number): number => median(rounds.map(value));
  const [rate, floor] = [
    of(({ owner: { requestsPerSecond } }) => requestsPerSecond),
    of((one) => one.alone.requestsPerSecond),
  ];
  const [p99, floorP99] = [of((one) => one.owner.p99Ms), of((one) => one.alone.p99Ms)];
  const [ownerUs, followerUs] = [of((one) => one.ownerUs), of((one) => one.followerUs)];
  return [
    {
      ...{
        name: "insert, 32 clients; the floor is a single server",
        measured: perSecond(rate),
        floor: perSecond(floor),
      },
      ...{ p50: milliseconds(of((one) => one.owner.p50Ms)), p99: milliseconds(p99), ratio: rate / floor },
      target: `≥ ${INSERT_TARGET}, p99 ≤ ${INSERT_P99_TARGET} × ${milliseconds(floorP99)}`,
      isMet: rate / floor >= INSERT_TARGET && p99 <= INSERT_P99_TARGET * floorP99,
    },
    {
      ...{ name: "processor time of a follower for an insert; the floor is the owner's", p50: null, p99: null },
      ...{ measured: `${followerUs.toFixed(0)} µs`, floor: `${ownerUs.toFixed(0)} µs`, ratio: followerUs / ownerUs },
      ...{ target: `≤ ${APPLY_TARGET}`, isMet: followerUs / ownerUs <= APPLY_TARGET },
    },
  ];
}

async function idOf({ url }: Running): Promise<string> {
  const { items } = (await (await fetch(`${url}${MAKERS}?limit=1`)).json()) as { items: { id: string }[] };
  const [first] = items;
  if (first === undefined) throw new Error("there is a record");
  return first.id;
}

async function reads(bench: Bench, { alone, follower }: Servers): Promise<Result> {
  bench.note("reads at a follower");
  const directory = bench.directory("load");
  const load = async (server: Running): Promise<Load> => ({ url: `${server.url}${MAKERS}/${await idOf(server)}` });
  const [ofAlone, ofFollower] = [await load(alone), await load(follower)];
  const rounds: [LoadResult, LoadResult][] = [];
  for (let round = 0; round <= ROUNDS; round++)
    rounds.push([
      await runLoad(ofFollower, { seconds: ROUND_S, directory }),
      await runLoad(ofAlone, { seconds: ROUND_S, directory }),
    ]);
  rounds.shift();
  const of = (index: 0 | 1, value: (result: LoadResult) => number): number =>
    median(rounds.map((one) => value(one[index])));
  const [rate, floor] = [of(0, (one) => one.requestsPerSecond), of(1, (one) => one.requestsPerSecond)];
  return {
    ...{
      name: "GET one at a follower; the floor is a single server",
      measured: perSecond(rate),
      floor: perSecond(floor),
    },
    ...{
      p50: milliseconds(of(0, (one) => one.p50Ms)),
      p99: milliseconds(of(0, (one) => one.p99Ms)),
      ratio: rate / floor,
    },
    ...{ target: `≥ ${READ_TARGET}`, isMet: rate / floor >= READ_TARGET },
  };
}

/** Measures for how much longer a change takes to a follower's subscriber than to the owner's. */
async function sockets(bench: Bench, { owner, follower }: Servers): Promise<Result> {
  bench.note("changes at a follower's sockets");
  const seen = new Map<string, { owner?: number; follower?: number }>();
  const note =
    (where: "owner" | "follower") =>
    (id: string): void => {
      seen.set(id, { ...seen.get(id), [where]: performance.now() });
    };
  const open = [await subscribe(owner, note("owner")), await subscribe(follower, note("follower"))];
  for (let change = 0; change < CHANGES; change++) {
    await insert(owner);
    await Bun.sleep(PROBE_MS);
  }
  await Bun.sleep(1_000);
  for (const socket of open) socket.close();
  const later = [...seen.values()].flatMap((one) =>
    one.owner === undefined || one.follower === undefined ? [] : [one.follower - one.owner],
  );
  if (later.length < CHANGES) throw new Error(`${CHANGES - later.length} changes have not come to both subscribers`);
  const p99 = quantile(later, 0.99);
  return {
    ...{
      name: "a change at a follower's subscriber, behind the owner's",
      measured: milliseconds(median(later)),
      ...NO_FLOOR,
    },
    ...{ p50: milliseconds(median(later)), p99: milliseconds(p99) },
    ...{ target: `p99 ≤ ${SOCKET_TARGET_MS} ms`, isMet: p99 <= SOCKET_TARGET_MS },
  };
}

/** Inserts through a server until told to end. Returns the longest time between two that were done, and the failures. */
function probing(server: Running): () => Promise<{ gapMs: number; failures: number }> {
  let isOver = false;
  let [gapMs, failures, doneAt] = [0, 0, performance.now()];
  const ended = (async () => {
    while (!isOver) {
      const status = await insert(server).catch(() => 0);
      if (status === 201) {
        gapMs = Math.max(gapMs, performance.now() - doneAt);
        doneAt = performance.now();
      } else failures += 1;
      await Bun.sleep(PROBE_MS);
    }
  })();
  return async () => {
    isOver = true;
    await ended;
    return { gapMs, failures };
  };
}

async function handovers(bench: Bench, postgres: TestPostgres, nodes: [Node, Node]): Promise<Result> {
  bench.note("handovers");
  const gaps: number[] = [];
  let failures = 0;
  for (let turn = 0; turn < HANDOVERS; turn++) {
    const [from, to] = turn % 2 === 0 ? nodes : nodes.toReversed();
    if (from === undefined || to === undefined) break;
    const end = probing(to);
    await Bun.sleep(500);
    const config = ["--config", from.configFile];
    const moved = Bun.spawn([bench.executable, "cluster", "move", "--to", to.nodeUrl, ...config], {
      env: from.env,
      stdio: ["ignore", "ignore", "inherit"],
    });
    if ((await moved.exited) !== 0) throw new Error("the group was not moved");
    await untilOwner(postgres, to);
    await Bun.sleep(1_000);
    const probed = await end();
    gaps.push(probed.gapMs);
    failures += probed.failures;
  }
  const worst = Math.max(...gaps);
  return {
    ...{ name: `handover: longest time between two inserts through the other node, ${failures} failed`, ...NO_FLOOR },
    ...{ measured: milliseconds(median(gaps)), p50: milliseconds(median(gaps)), p99: milliseconds(worst) },
    ...{ target: `≤ ${HANDOVER_TARGET_MS} ms, none failed`, isMet: worst <= HANDOVER_TARGET_MS && failures === 0 },
  };
}

async function failover(bench: Bench, postgres: TestPostgres, owner: Node, follower: Node): Promise<Result> {
  bench.note("a failover");
  const end = probing(follower);
  await Bun.sleep(500);
  process.kill(owner.pid, "SIGKILL");
  await untilOwner(postgres, follower);
  await Bun.sleep(2_000);
  const { gapMs } = await end();
  return {
    ...{
      name: "failover after SIGKILL: time between two inserts through the other node",
      measured: milliseconds(gapMs),
    },
    ...{ p50: null, p99: null, ...NO_FLOOR },
    ...{ target: `≤ ${FAILOVER_TARGET_MS / 1_000} s`, isMet: gapMs <= FAILOVER_TARGET_MS },
  };
}

export const cluster: Section = {
  name: "cluster",
  title: "A cluster",
  about: `Two nodes and a PostgreSQL that syncs its commits (\`durability: "single"\`), beside a single server, on the same two processors and disk as the load generator. In turns, medians of ${ROUNDS} rounds after one that
does not count, with 32 connections of wrk. Subscribers of both nodes get ${CHANGES} changes, one after another. Then the group is moved ${HANDOVERS} times while inserts go through the node that gets it (the 99th percentile is the
longest), and its owner is killed.`,
  async run(bench) {
    const postgres = await startLog();
    const directories = (name: string): string => bench.directory(`cluster-${name}`);
    const alone = await startAlone(bench.executable, directories("alone"));
    const owner = await startNode(bench.executable, postgres, { name: "owner", directories });
    const follower = await startNode(bench.executable, postgres, { name: "follower", directories });
    const servers = { alone, owner, follower };
    try {
      const results = [...(await inserts(bench, servers)), await reads(bench, servers), await sockets(bench, servers)];
      results.push(await handovers(bench, postgres, [owner, follower]));
      // An odd number of moves: the second one owns the group now.
      results.push(await failover(bench, postgres, follower, owner));
      return results;
    } finally {
      for (const server of [alone, follower, owner]) await server.stop();
      await postgres.stop();
    }
  },
};
