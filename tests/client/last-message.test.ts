import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Client, clientOf, createContext } from "../../src/client/client.ts";
import type { LiveQuery } from "../../src/client/live/types.ts";
import { startOffline } from "../../src/client/offline/offline.ts";
import type { OfflineStorage } from "../../src/client/offline/storage.ts";
import { memoryStore } from "../../src/client/store.ts";
import { PlatformError } from "../../src/client/transport/errors.ts";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { type Random, random } from "../support/random.ts";
import { until } from "../support/until.ts";
import { memoryStorage } from "./offline-storage.ts";
import { createWire, fastRuntime, type Wire } from "./wire.ts";

// Random writes of this client and of others, over windows of every size. When the last message has arrived (every request is
// answered, and the server says that it has sent all changes), each live query equals its list in the next turn of the event loop. In
// every other world, writes go through the queue of the option `offline`.
//
//   PLATFORM_LIVE_SEEDS=200                             so many worlds (12 by default)
//   PLATFORM_TEST_SEED=123                              world 123 alone

const [DEFAULT_COUNT, ROUNDS] = [12, 14];
const IDS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

const CONFIG = `{
  auth: { anonymous: true },
  realtime: { messageRate: 10_000 },
  databases: {
    worlds: {
      instance: true,
      access: { create: (auth) => auth !== null, open: (auth) => auth !== null },
      tables: {
        items: {
          schema: {
            rank: { type: "integer" }, name: { type: "string" }, on: { type: "boolean", default: true },
            code: { type: "string", unique: true }, hidden: { type: "boolean", default: false },
          },
          // What is written may be hidden from its writer, and a write may be refused.
          access: {
            read: () => [["hidden", "==", false]], insert: (auth, item) => item.rank !== 13, update: (auth, item) => item.rank !== 13, delete: true,
          },
        },
      },
    },
  },
}`;

let platform: TestPlatform;
/** The session of all clients: sign-ups are limited. */
const store = memoryStore();
/** Requests of the clients of this file that are under way. */
let underWay = 0;
const { fetch } = globalThis;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const first = clientOf(createContext({ url: platform.url, store }, fastRuntime(1)));
  await first.auth.signInAnonymously();
  first.close();
  const counted = async (...given: Parameters<typeof fetch>) => {
    underWay++;
    try {
      const answer = await fetch(...given);
      // With its body, which is read before anything is shown.
      return new Response(await answer.blob(), answer);
    } finally {
      underWay--;
    }
  };
  globalThis.fetch = Object.assign(counted, { preconnect: fetch.preconnect });
});
afterAll(async () => {
  globalThis.fetch = fetch;
  await platform.stop();
});

type AnyQuery = ReturnType<ReturnType<Client["db"]>["table"]> & { live(): LiveQuery<JsonObject> };
type AnyTable = Record<string, (...all: unknown[]) => Promise<unknown>>;

interface World {
  r: Random;
  client: Client;
  wire: Wire;
  path: string;
  instance: string;
  /** The queue of the option `offline`; null without it. */
  storage: OfflineStorage | null;
  queries: { live: LiveQuery<JsonObject>; query: AnyQuery; text: string }[];
}

const fieldsOf = (r: Random): JsonObject => ({
  rank: r.below(15),
  name: r.pick(["a", "b", "c"]),
  on: r.chance(0.8),
  hidden: r.chance(0.1),
});
function changesOf(r: Random): JsonObject {
  const all = Object.entries(fieldsOf(r)).filter(() => r.chance(0.4));
  if (r.chance(0.4)) all.push(["rank", { $op: "increment", value: r.pick([-9, -1, 1, 9]) }]);
  return Object.fromEntries(all);
}

function queryOf(r: Random, table: AnyQuery): World["queries"][number] {
  let query = table;
  const parts: string[] = [];
  const add = (name: string, ...values: unknown[]) => {
    // The methods of a query, which its types know for declared tables alone.
    query = (query as unknown as Record<string, (...all: unknown[]) => AnyQuery>)[name]?.(...values) ?? query;
    parts.push(`${name}(${values.map((value) => JSON.stringify(value)).join()})`);
  };
  if (r.chance(0.4)) add("where", "on", "==", true);
  if (r.chance(0.3)) add("where", "rank", r.pick(["<", ">="]), r.below(15));
  if (r.chance(0.8)) add("sort", r.pick(["rank", "name", "updatedAt"]), r.pick(["asc", "desc"]));
  add("limit", r.chance(0.2) ? 100 : 1 + r.below(5));
  if (r.chance(0.2)) add("fields", "name");
  return { live: query.live(), query, text: parts.join(".") };
}

async function begin(seed: number): Promise<World> {
  const r = random(seed * 6_151 + 5);
  const instance = `w${seed}`;
  const path = `/api/db/worlds/${instance}/tables/items`;
  const inserts = IDS.filter(() => r.chance(0.7)).map((id) => ({ id, ...fieldsOf(r), code: id }));
  await platform.service.post(`${path}/batch`, { inserts });
  const wire = createWire();
  const context = createContext({ url: platform.url, store, webSocket: wire.WebSocket }, fastRuntime(10));
  const client = clientOf<unknown>(context);
  await context.session.ready;
  const storage = seed % 2 === 0 ? memoryStorage() : null;
  if (storage !== null) {
    const refused = () => {};
    context.deliver = await startOffline(context, { name: instance, storage, direct: context.deliver, refused });
  }
  const queries = Array.from({ length: 3 }, () =>
    queryOf(r, client.db("worlds", instance).table("items") as unknown as AnyQuery),
  );
  for (const { live } of queries) live.subscribe(() => {});
  return { r, client, wire, path, instance, storage, queries };
}

async function own({ r, client, instance }: World): Promise<unknown> {
  const database = client.db("worlds", instance);
  // Any table: its types are those of JSON.
  const table = database.table("items") as unknown as AnyTable;
  const id = r.pick(IDS);
  const kind = r.below(100);
  if (kind < 45) return table["update"]?.(id, changesOf(r));
  if (kind < 55) return table["insert"]?.({ ...fieldsOf(r), ...(r.chance(0.5) ? { id, code: id } : {}) });
  if (kind < 65) return table["delete"]?.(id);
  if (kind < 72) return table["upsert"]?.({ id, ...fieldsOf(r) });
  // The client cannot know which record that is.
  if (kind < 78) return table["upsert"]?.({ code: id, ...fieldsOf(r) }, { conflictTarget: "code" });
  if (kind < 92) {
    const updates = IDS.filter(() => r.chance(0.25)).map((one) => ({ id: one, data: changesOf(r) }));
    return table["batch"]?.({ inserts: [fieldsOf(r)], updates, deletes: [] });
  }
  const operations = [{ action: "update", table: "items", id, data: changesOf(r) }];
  return (database as unknown as AnyTable)["transaction"]?.(operations);
}

async function others({ r, path }: World): Promise<unknown> {
  const id = r.pick(IDS);
  if (r.chance(0.6)) return platform.service.patch(`${path}/${id}`, changesOf(r));
  if (r.chance(0.4)) return platform.service.delete(`${path}/${id}`);
  return platform.service.post(`${path}?upsert=true`, { id, ...fieldsOf(r) });
}

/** Returns when every request of the client is answered, and everything that the server had to send has been given to the client. */
async function lastMessage({ wire, storage }: World): Promise<void> {
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
  for (;;) {
    while (underWay > 0 || ((await storage?.waiting()) ?? []).length > 0) await Bun.sleep(1);
    const [sent, received] = [wire.sent.length, wire.received];
    const flushes = await wire.flushed();
    await nextTurn();
    // Nothing but the answers to these.
    if (underWay === 0 && wire.sent.length === sent && wire.received === received + flushes) return;
  }
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

async function check(world: World, about: string): Promise<void> {
  const shown = world.queries.map(({ live }) =>
    plain({ items: live.items, hasMore: live.hasMore, pending: IDS.filter((id) => live.isPending(id)) }),
  );
  for (const [index, { query, text }] of world.queries.entries()) {
    const { items, hasMore } = await query.list();
    const difference = { about, query: text, shown: shown[index] };
    expect(difference).toEqual({ about, query: text, shown: plain({ items, hasMore, pending: [] }) });
  }
}

async function play(seed: number): Promise<void> {
  const world = await begin(seed);
  const { r, wire, queries } = world;
  const refused = (error: unknown) => {
    if (!(error instanceof PlatformError)) throw error;
  };
  try {
    for (let round = 0; round < ROUNDS; round++) {
      await until("all are live", () => queries.every(({ live }) => live.status === "live"));
      const acts: Promise<unknown>[] = [];
      for (let count = 1 + r.below(5); count > 0; count--) {
        acts.push((r.chance(0.7) ? own(world) : others(world)).catch(refused));
        if (r.chance(0.5)) await acts.at(-1);
      }
      const connections = wire.opened.length + (r.chance(0.1) ? 1 : 0);
      if (connections > wire.opened.length) wire.cut();
      await Promise.all(acts);
      await until("it is connected", () => wire.opened.length === connections);
      await until("all are live", () => queries.every(({ live }) => live.status === "live"));
      await lastMessage(world);
      await check(world, `PLATFORM_TEST_SEED=${seed}, round ${round}`);
    }
  } finally {
    world.client.close();
  }
}

const one = process.env["PLATFORM_TEST_SEED"];
const count = Number(process.env["PLATFORM_LIVE_SEEDS"] ?? DEFAULT_COUNT);
const seeds = one === undefined ? Array.from({ length: count }, (_, index) => index + 1) : [Number(one)];

test(
  `[TC125] a live query is its list in the next turn after the last message (${seeds.length} worlds)`,
  async () => {
    for (const seed of seeds) await play(seed);
  },
  60_000 + seeds.length * 10_000,
);
