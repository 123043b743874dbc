import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { openSocket, type TestSocket, until } from "../../support/index.ts";
import { testSeed } from "../../support/random.ts";
import { holds, randomTuple, type Tuple } from "../../support/rules.ts";
import {
  ask,
  type Caller,
  granted,
  may,
  type RuledTable,
  type RulesWorld,
  recordOf,
  rulesWorld,
  secretsIn,
} from "../../support/rules-world.ts";
import { settled } from "../realtime/realtime-support.ts";

// Sockets send changes of the records that a list would show: random rules, filters and changes, against an oracle that
// evaluates the rules. A new kind of subscription is a new entry in WAYS.

const SEED = testSeed(20_263);
const ROUNDS = Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const TABLES_PER_ROUND = 12;
const STEPS = 12;

let world: RulesWorld;
let root: Caller;
let people: Caller[];
beforeAll(async () => {
  world = await rulesWorld(SEED, TABLES_PER_ROUND * ROUNDS);
  const found = world.callers.find(({ name }) => name === "root");
  if (found === undefined) throw new Error("no root");
  root = found;
  people = world.callers.filter(({ token }) => token !== null);
});
afterAll(() => world.stop());

interface Filters {
  filters: Tuple[];
  orFilters: Tuple[];
}

/** A record before and after a change. */
interface Step {
  id: string;
  before: JsonObject | null;
  after: JsonObject | null;
}

/** A subscription, and the events that it must get. */
interface Listener {
  way: string;
  table: RuledTable;
  caller: Caller;
  channel: string;
  docId: string | null;
  view: Filters;
  socket: TestSocket;
  wanted: string[];
}

const NO_FILTERS: Filters = { filters: [], orFilters: [] };

/** Kinds of subscriptions. */
const WAYS: readonly { name: string; isFiltered: boolean; isRecord: boolean }[] = [
  { name: "a table's channel", isFiltered: false, isRecord: false },
  { name: "a table's channel with filters", isFiltered: true, isRecord: false },
  { name: "a record's channel", isFiltered: false, isRecord: true },
  { name: "a record's channel with filters", isFiltered: true, isRecord: true },
];

const randomFilters = (): Filters => ({
  filters: Array.from({ length: world.r.below(3) }, () => randomTuple(world.r, world.owners)),
  orFilters: Array.from({ length: world.r.below(3) }, () => randomTuple(world.r, world.owners)),
});

/** null: the subscription was refused, as the rules require. */
async function listen(
  way: (typeof WAYS)[number],
  table: RuledTable,
  caller: Caller,
  since: number | null,
  view = way.isFiltered ? randomFilters() : NO_FILTERS,
): Promise<(Listener & { seq: number }) | null> {
  const docId = way.isRecord ? "r3" : null;
  const channel = docId === null ? table.channel : `${table.channel}:${docId}`;
  const socket = await openSocket(`${world.platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: caller.token ?? "" });
  await socket.expect({ type: "auth_success" });
  socket.send({
    type: "subscribe",
    channel,
    ...(since === null ? {} : { since }),
    ...(way.isFiltered ? asJson(view) : {}),
  });
  const answer = await socket.next();
  const isDenied = granted(table, caller, "read") === "none";
  const about = { caller: caller.name, read: table.rules.read?.source };
  expect({ ...about, type: answer["type"] }).toEqual({ ...about, type: isDenied ? "error" : "subscribed" });
  if (isDenied) {
    expect(answer["code"]).toBe("SUBSCRIBE_DENIED");
    await socket.close();
    return null;
  }
  return { way: way.name, table, caller, channel, docId, view, socket, wanted: [], seq: Number(answer["seq"]) };
}

/** A copy that can be sent: readonly lists are no JSON to the compiler. */
const asJson = (filters: Filters): JsonObject => JSON.parse(JSON.stringify(filters));

function sees({ table, caller, view, docId }: Listener, record: JsonObject | null): boolean {
  if (record === null || (docId !== null && record["id"] !== docId)) return false;
  const isWanted =
    view.filters.every((tuple) => holds(tuple, record)) &&
    (view.orFilters.length === 0 || view.orFilters.some((tuple) => holds(tuple, record)));
  return isWanted && may(table, caller, "read", record);
}

function hears(listener: Listener, { id, before, after }: Step): string[] {
  const [was, is] = [sees(listener, before), sees(listener, after)];
  if (!was && !is) return [];
  return [`${was ? (is ? "modified" : "removed") : "added"} ${id}`];
}

/** Makes random changes as root, one request each, and returns them. */
async function change(table: RuledTable, from: number): Promise<Step[]> {
  const { r, owners } = world;
  const steps: Step[] = [];
  for (let index = from; index < from + STEPS; index++) {
    const made: Step[] = [];
    const ids = [...table.records.keys()];
    const changeOne = (id: string): Step => {
      const before = table.records.get(id) ?? null;
      const { secret, slug, ...fresh } = recordOf(r, table.name, id, owners);
      return { id, before, after: { ...before, ...fresh } };
    };
    const kind = r.below(4);
    if (kind === 0) {
      const id = `x${index}`;
      const after = recordOf(r, table.name, id, owners);
      made.push({ id, before: null, after });
      expect((await ask(root, "POST", table.path, after)).status).toBe(201);
    } else if (kind === 1 && ids.length > 4) {
      const id = r.pick(ids.filter((one) => one !== "r3"));
      made.push({ id, before: table.records.get(id) ?? null, after: null });
      expect((await ask(root, "DELETE", `${table.path}/${id}`)).status).toBe(200);
    } else if (kind === 2) {
      // Enough for a batch_changes, or not.
      for (const id of ids.slice(0, 1 + r.below(12))) made.push(changeOne(id));
      const updates = made.map(({ id, after }) => ({ id, data: after ?? {} }));
      expect((await ask(root, "POST", `${table.path}/batch`, { updates })).status).toBe(200);
    } else {
      made.push(changeOne(r.chance(0.5) ? "r3" : r.pick(ids)));
      const step = made[0];
      const answer = await ask(root, "PATCH", `${table.path}/${step?.id}`, step?.after ?? {});
      expect(answer.status).toBe(200);
    }
    for (const { id, after } of made) {
      if (after === null) table.records.delete(id);
      else table.records.set(id, after);
    }
    steps.push(...made);
  }
  return steps;
}

/** The events that have arrived. Fails for an event with a record that its caller may not read. */
function take(listener: Listener): string[] {
  const { socket, table, caller } = listener;
  return socket.pending.flatMap((message) => {
    if (message["type"] === "pong") return [];
    const changes = message["type"] === "batch_changes" ? (message["changes"] as JsonObject[]) : [message]; // as specified
    return changes.map((one) => {
      const data = one["data"] as JsonObject | null; // as specified
      const isTold = data === null || may(table, caller, "read", data);
      const about = { way: listener.way, caller: caller.name, read: table.rules.read?.source };
      expect({ ...about, isTold, secrets: secretsIn(JSON.stringify(one)).length }).toEqual({
        ...{ ...about, isTold: true },
        secrets: data === null ? 0 : 1,
      });
      return `${one["changeType"]} ${one["docId"]}`;
    });
  });
}

async function expectHeard(listeners: readonly Listener[]): Promise<void> {
  for (const listener of listeners) {
    await until("every event has arrived", () => take(listener).length >= listener.wanted.length);
  }
  // A surplus event follows the last expected one: one more round trip each.
  for (const { socket } of listeners) {
    const pongsOf = () => socket.pending.filter(({ type }) => type === "pong").length;
    const before = pongsOf();
    socket.send({ type: "ping" });
    await until("the ping is answered", () => pongsOf() > before);
  }
  for (const listener of listeners) {
    const about = {
      ...{ way: listener.way, caller: listener.caller.name, read: listener.table.rules.read?.source },
      view: listener.view,
    };
    expect({ ...about, heard: take(listener) }).toEqual({ ...about, heard: listener.wanted });
  }
}

test(`[RT15, RT19] live, by filter and replayed, sockets send what a list would show (seed ${SEED})`, async () => {
  let heardCount = 0;
  for (const table of world.tables) {
    // A dynamic namespace has no channels of records.
    const ways = WAYS.filter(({ isRecord }) => !isRecord || table.channel.startsWith("realtime:shared:"));
    const opened = await Promise.all(
      people.flatMap((caller) => ways.map(async (way) => ({ way, listener: await listen(way, table, caller, null) }))),
    );
    const steps = await change(table, 0);
    const listeners: Listener[] = [];
    const seqs: number[] = [];
    for (const { way, listener } of opened) {
      if (listener === null) continue;
      listener.wanted = steps.flatMap((step) => hears(listener, step));
      listeners.push(listener);
      seqs.push(listener.seq);
      // A later subscription with `since` gets the same events.
      const replayed = await listen(way, table, listener.caller, listener.seq, listener.view);
      if (replayed === null) throw new Error("refused the second time");
      listeners.push({ ...replayed, way: `${way.name}, replayed`, wanted: listener.wanted });
    }
    await expectHeard(listeners);
    heardCount += listeners.reduce((sum, { wanted }) => sum + wanted.length, 0);
    await hearOn(table, listeners);
    await Promise.all(listeners.map(({ socket }) => socket.close()));
  }
  expect(heardCount).toBeGreaterThan(100);
});

/** Changed filters apply to later events, and to the state of a record before a change. */
async function hearOn(table: RuledTable, listeners: readonly Listener[]): Promise<void> {
  for (const listener of listeners) {
    if (!listener.way.includes("filters")) continue;
    listener.view = randomFilters();
    listener.socket.send({ type: "update_filters", channel: listener.channel, ...asJson(listener.view) });
    await listener.socket.nextOf("filters_updated");
    await settled(listener.socket);
  }
  const before = listeners.map((listener) => ({ listener, heard: take(listener) }));
  const steps = await change(table, STEPS);
  for (const { listener, heard } of before) {
    listener.wanted = [...heard, ...steps.flatMap((step) => hears(listener, step))];
  }
  await expectHeard(listeners);
}
