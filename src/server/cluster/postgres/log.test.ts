import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SimulatedPostgres } from "../../../../tests/fuzz/cluster-model/simulated-postgres.ts";
import { World } from "../../../../tests/fuzz/cluster-model/world.ts";
import { TestPostgres } from "../../../../tests/support/cluster/postgres.ts";
import { type Random, random, testSeed } from "../../../../tests/support/random.ts";
import { until } from "../../../../tests/support/until.ts";
import { Appender } from "../protocol/appender.ts";
import { KeptEntries } from "../protocol/kept.ts";
import { type LogEntry, outcomeOf, type Place, type Statement, type StatementAnswer } from "../protocol/statements.ts";
import type { PostgresConnection } from "./connection.ts";
import { askLog, LogChannel } from "./log-channel.ts";
import { makePartitions } from "./partitions.ts";
import { makeSchema } from "./schema.ts";

const PARTITION_POSITIONS = 500;
const STATEMENTS = 1_500;
const TAKEOVERS = 200;
const seed = testSeed(1);

let postgres: TestPostgres;
let connection: PostgresConnection;

beforeAll(async () => {
  postgres = await TestPostgres.start();
});
afterAll(() => postgres.stop());
beforeEach(async () => {
  await postgres.sql("DROP SCHEMA IF EXISTS platform CASCADE");
  connection = await postgres.connect();
  await makeSchema(connection, PARTITION_POSITIONS);
  return () => connection.close();
});

const row = (file: string, number: number) => ({ file, number, content: Uint8Array.of(number % 256, 0, 255) });

/** Makes statements of which many find what they expect, and many do not. */
class StatementMaker {
  readonly #random: Random;
  #last: StatementAnswer | null = null;
  #nonces = 0;

  constructor(seedOfRun: number) {
    this.#random = random(seedOfRun);
  }

  saw(answer: StatementAnswer): void {
    this.#last = answer;
  }

  next(): Statement {
    const r = this.#random;
    const node = r.pick(["a", "b"]);
    const known = this.#last?.nodes.find((one) => one.node === node);
    const incarnation = known !== undefined && r.chance(0.8) ? known.incarnation : `${node}${r.below(3)}`;
    const group = this.#last?.group ?? { position: 0, nonce: "", epoch: 0, owner: "", incarnation: "", history: 0 };
    const near = (value: number): number => (r.chance(0.8) ? value : Math.max(0, value + r.below(5) - 2));
    const kind = r.pick([
      "look",
      "read",
      "join",
      "renew",
      "renew",
      "barrier",
      "append",
      "append",
      "take",
      "take",
    ] as const);
    if (kind === "look") return { kind, position: near(group.position) };
    if (kind === "read") return { kind, from: near(Math.max(0, group.position - 5)), limit: 1 + r.below(8) };
    if (kind === "barrier") return { kind, node };
    if (kind === "join") {
      const replaces = known === undefined || r.chance(0.2) ? null : { ...known, counter: near(known.counter) };
      return { kind, node, incarnation: `${node}${r.below(3)}`, replaces };
    }
    if (kind === "renew") {
      const acting = r.chance(0.5) ? (known?.acting ?? null) : r.pick([null, near(group.epoch)]);
      const counter = near((known?.counter ?? 0) + 1);
      return { kind, node, incarnation, counter, applied: r.below(9), known: r.below(9), acting };
    }
    if (kind === "append") {
      const position = near(group.position + 1);
      const previous = r.chance(0.9) ? group.nonce : "another";
      const body = Array.from({ length: 1 + r.below(3) }, (_, at) => row(`f${at}`, position));
      const entry = { position, epoch: group.epoch, nonce: `n${++this.#nonces}`, previous, body };
      return { kind, epoch: near(group.epoch), incarnation: r.chance(0.8) ? group.incarnation : incarnation, entry };
    }
    const owner = this.#last?.nodes.find((one) => one.node === group.owner);
    const counter = r.chance(0.5) ? null : near(owner?.counter ?? 0);
    return { kind, node, incarnation, from: { ...group, epoch: near(group.epoch), counter } };
  }
}

test(`[CLU20] ${STATEMENTS} statements do in PostgreSQL what they do in the model (seed ${seed})`, async () => {
  const model = new SimulatedPostgres(new World(random(1)), { off: null, onTake() {} }, 1, []);
  model.setStandbyNames([""]);
  const maker = new StatementMaker(seed);
  const done = new Map<string, number>();
  for (let count = 0; count < STATEMENTS; count++) {
    const statement = maker.next();
    const answers: StatementAnswer[] = [];
    model.receive(statement, "x", (answer) => answers.push(answer));
    const expected = answers[0];
    if (expected === undefined) throw new Error("the model does not answer");
    const sorted = ({ isDone, group, nodes, entries }: StatementAnswer) => ({
      isDone,
      group,
      nodes: nodes.toSorted((a, b) => a.node.localeCompare(b.node)),
      entries,
    });
    const answer = await askLog(connection, statement);
    expect({ count, statement, ...sorted(answer) }).toEqual({ count, statement, ...sorted(expected) });
    if (answer.isDone) done.set(statement.kind, (done.get(statement.kind) ?? 0) + 1);
    else done.set(`no ${statement.kind}`, (done.get(`no ${statement.kind}`) ?? 0) + 1);
    maker.saw(await askLog(connection, { kind: "look", position: 0 }));
  }
  for (const kind of ["join", "renew", "append", "take"])
    for (const name of [kind, `no ${kind}`])
      expect({ name, count: done.get(name) ?? 0 }).toMatchObject({ count: expect.any(Number) });
  expect(
    Math.min(
      ...["append", "no append", "take", "no take", "renew", "no renew", "no join"].map((name) => done.get(name) ?? 0),
    ),
  ).toBeGreaterThan(5);
}, 120_000);

/** An owner that appends by the protocol over connections of its own, as long as nobody else takes the group. */
class Owner {
  readonly acknowledged: Place[] = [];
  readonly #channel: LogChannel;
  readonly #appender: Appender;
  isFenced = false;
  unknown = 0;

  constructor(
    url: string,
    name: string,
    taken: StatementAnswer,
    settings: { nonce: () => string; durability: "standby" | "single" },
  ) {
    const { nonce, durability } = settings;
    const { epoch, incarnation, position, nonce: last } = taken.group;
    const end = { position, nonce: last };
    const owner = { node: name, incarnation, epoch, durability, end, acknowledged: end };
    this.#appender = new Appender(owner, [], new KeptEntries(), {
      send: (statement) => this.#channel.send(statement),
      nonce,
      note() {},
      acknowledged: (place) => this.acknowledged.push(place),
      fenced: () => this.#end(),
      lost: () => this.#end(),
    });
    this.#channel = new LogChannel({
      url,
      incarnation,
      nonce,
      after: (delayMs, run) => void setTimeout(run, delayMs / 10),
      opened: () => this.#appender.opened(),
      closed: () => {
        this.unknown += 1;
        this.#appender.closed();
      },
      answered: (answer) => this.#appender.answered(answer),
      failed() {},
    });
    this.#channel.start();
  }

  /** Commits; more than 50 at once wait for nobody. */
  commit(number: number): void {
    if (!this.isFenced) this.#appender.commit(row("system", number));
  }

  /** Ends it as a kill of its process would: what it sent may still be carried out. */
  stop(): void {
    this.#channel.stop();
    this.#appender.end();
  }

  #end(): void {
    this.isFenced = true;
    this.#channel.stop();
  }
}

/** Returns the whole log. Errors: a position is missing, or there twice. */
async function wholeLog(): Promise<readonly LogEntry[]> {
  const { group, entries } = await askLog(connection, { kind: "read", from: 0, limit: 1_000_000 });
  expect(entries.map(({ position }) => position)).toEqual(Array.from({ length: group.position }, (_, at) => at + 1));
  let previous = "";
  for (const entry of entries) {
    expect(entry.previous).toBe(previous);
    previous = entry.nonce;
  }
  return entries;
}

test(`[CLU21] of what is appended during ${TAKEOVERS} takeovers, with backends killed, nothing is lost and nothing is late`, async () => {
  const r = random(seed);
  let nonces = 0;
  let commits = 0;
  const nonce = (): string => `n${++nonces}`;
  const owners: Owner[] = [];
  const taken: { epoch: number; position: number }[] = [];
  for (const name of ["a", "b", "c"])
    await askLog(connection, { kind: "join", node: name, incarnation: `${name}1`, replaces: null });
  while (taken.length < TAKEOVERS) {
    const node = r.pick(["a", "b", "c"]);
    const { group, nodes } = await askLog(connection, { kind: "look", position: 0 });
    const counter = nodes.find((one) => one.node === group.owner)?.counter ?? null;
    const from = { epoch: group.epoch, owner: group.owner, incarnation: group.incarnation, counter };
    // Two at once: one of them finds another owner.
    const other = await postgres.connect();
    const takes = [node, r.pick(["a", "b", "c"])].map((one, at) =>
      askLog(at === 0 ? connection : other, { kind: "take", node: one, incarnation: `${one}1`, from }).then(
        (answer) => ({ one, answer }),
      ),
    );
    for (const { one, answer } of await Promise.all(takes)) {
      if (!answer.isDone) continue;
      taken.push({ epoch: answer.group.epoch, position: answer.group.position });
      owners.push(new Owner(postgres.url, one, answer, { nonce, durability: "single" }));
      await makePartitions(connection, answer.group.position, PARTITION_POSITIONS);
    }
    other.close();
    // Former owners go on, as long as they know nothing of it.
    for (let turns = r.below(12); turns > 0; turns--) {
      for (const owner of owners.slice(-3)) for (let count = r.below(4); count > 0; count--) owner.commit(++commits);
      if (r.chance(0.1)) await askLog(connection, { kind: "terminate", incarnation: `${node}1` });
      await Bun.sleep(r.below(4));
    }
  }
  owners.at(-1)?.commit(++commits);
  await until("the last owner's commits are in the log", () => (owners.at(-1)?.acknowledged.length ?? 0) > 0);
  for (const owner of owners) owner.stop();
  const entries = await wholeLog();
  const acknowledged = owners.flatMap((owner) => owner.acknowledged);
  for (const { position, nonce: name } of acknowledged) expect(entries[position - 1]?.nonce).toBe(name);
  for (const { epoch, position } of taken)
    expect(entries.filter((entry) => entry.position > position && entry.epoch < epoch)).toEqual([]);
  const numbers = entries.flatMap(({ body }) => body.map(({ number }) => number));
  expect(new Set(numbers).size).toBe(numbers.length);
  // Faults have struck, and work was done.
  expect(acknowledged.length).toBeGreaterThan(TAKEOVERS);
  expect(owners.filter(({ isFenced }) => isFenced).length).toBeGreaterThan(TAKEOVERS / 10);
  expect(owners.reduce((sum, { unknown }) => sum + unknown, 0)).toBeGreaterThan(10);
}, 240_000);

describe("[CLU22] a success that proves nothing is noticed", () => {
  const waitsForStandby = async (count: number): Promise<void> =>
    until(`${count} commits wait for a standby`, async () => {
      const rows = await postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
      return rows[0]?.[0] === String(count);
    });
  afterEach(() => postgres.setStandbyNames(""));

  test("of a wait that was cancelled: the row is there for everybody, and is not acknowledged", async () => {
    await askLog(connection, { kind: "join", node: "a", incarnation: "a1", replaces: null });
    const from = { epoch: 0, owner: "", incarnation: "", counter: null };
    const taken = await askLog(connection, { kind: "take", node: "a", incarnation: "a1", from });
    await postgres.setStandbyNames("nobody");
    const owner = new Owner(postgres.url, "a", taken, { nonce: () => crypto.randomUUID(), durability: "standby" });
    owner.commit(1);
    await waitsForStandby(1);
    const look: Statement = { kind: "look", position: 1 };
    expect((await askLog(connection, look)).entries).toEqual([]);
    await postgres.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    await until("the row is visible", async () => (await askLog(connection, look)).entries.length === 1);
    // The barrier behind it.
    await waitsForStandby(1);
    expect(owner.acknowledged).toEqual([]);
    await postgres.setStandbyNames("");
    await until("the append is acknowledged", () => owner.acknowledged.length > 0);
    owner.stop();
    expect((await wholeLog()).map(({ position, nonce }) => ({ position, nonce }))).toEqual(owner.acknowledged);
  });

  test("of names that were emptied and put back while a backend did not run", async () => {
    await postgres.setStandbyNames("nobody");
    const [stopped, other] = await Promise.all([postgres.connect("stopped"), postgres.connect()]);
    const [[pid] = []] = await postgres.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'stopped'");
    const answer = askLog(stopped, { kind: "barrier", node: "a" });
    const released = askLog(other, { kind: "barrier", node: "b" });
    await waitsForStandby(2);
    process.kill(Number(pid), "SIGSTOP");
    await postgres.setStandbyNames("");
    await released;
    await postgres.setStandbyNames("nobody");
    process.kill(Number(pid), "SIGCONT");
    const { isDone, hasNotice, before, after } = await answer;
    expect({ isDone, hasNotice, before: before.standbyNames, after: after.standbyNames }).toEqual({
      isDone: true,
      hasNotice: false,
      before: "nobody",
      after: "nobody",
    });
    expect(outcomeOf(await answer, "standby")).toBe("unknown");
    stopped.close();
    other.close();
  });

  test("of a wait that ended by itself nothing is doubted", async () => {
    const answer = await askLog(connection, { kind: "barrier", node: "a" });
    expect(outcomeOf(answer, "single")).toBe("durable");
    expect(outcomeOf(answer, "standby")).toBe("weak");
  });
});

test("[CLU23] a primary is killed while groups are appended to, and its standby has everything that was acknowledged", async () => {
  const primary = await TestPostgres.start();
  const standby = await primary.standby("one");
  await primary.setStandbyNames("one");
  const [first, second] = [await primary.connect(), await standby.connect()];
  await makeSchema(first, PARTITION_POSITIONS);
  await askLog(first, { kind: "join", node: "a", incarnation: "a1", replaces: null });
  const taken = await askLog(first, {
    kind: "take",
    node: "a",
    incarnation: "a1",
    from: { epoch: 0, owner: "", incarnation: "", counter: null },
  });
  expect(outcomeOf(taken, "standby")).toBe("durable");
  const owner = new Owner(primary.url, "a", taken, { nonce: () => crypto.randomUUID(), durability: "standby" });
  let commits = 0;
  await until("much is acknowledged", () => {
    owner.commit(++commits);
    return owner.acknowledged.length >= 50;
  });
  owner.commit(++commits);
  await primary.kill();
  owner.stop();
  await standby.promote();
  const { entries } = await askLog(second, { kind: "read", from: 0, limit: 1_000_000 });
  for (const { position, nonce } of owner.acknowledged) expect(entries[position - 1]?.nonce).toBe(nonce);
  first.close();
  second.close();
  await standby.stop();
});
