import { expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import {
  type Answer,
  type HttpClient,
  type ListAnswer,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../support/index.ts";
import { random as seeded, testSeed } from "../support/random.ts";

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 3);
const SEED = testSeed(815);
const WRITERS = 8;
const KILL_AFTER_ANSWERS = { min: 40, spread: 300 };
const OPEN = { read: true, insert: true, update: true };
const CONFIG = {
  databases: {
    shared: {
      tables: {
        entries: { schema: { key: { type: "string" } }, access: OPEN },
        sums: { schema: { n: { type: "integer", default: 0 } }, access: OPEN },
      },
    },
    rooms: {
      instance: true,
      access: { create: true, open: true },
      tables: { entries: { schema: { key: { type: "string" } }, access: OPEN } },
    },
  },
};
const SHARED = "/api/db/shared";

/** A write under a key, which is sent until it is answered. */
interface Write {
  key: string;
  send(client: HttpClient): Promise<Answer<JsonObject>>;
  /** Records of `entries` that it makes, by their place; and what it adds to the sum. */
  makes: { at: string; records: number };
  adds: number;
}

const increment = { n: { $op: "increment", value: 1 } };
const kinds: readonly ((key: string, room: string) => Omit<Write, "key">)[] = [
  (key) => post(`${SHARED}/tables/entries`, { key }, key, { at: SHARED, records: 1 }, 0),
  (key, room) => post(`${room}/tables/entries`, { key }, key, { at: room, records: 1 }, 0),
  (key) => post(`${SHARED}/tables/entries/batch`, { inserts: [{ key }, { key }] }, key, { at: SHARED, records: 2 }, 0),
  (key) => {
    const operations = [
      { table: "entries", action: "insert", data: { key } },
      { table: "sums", action: "update", id: "all", data: increment },
    ];
    return post(`${SHARED}/transaction`, { operations }, key, { at: SHARED, records: 1 }, 1);
  },
  (key) => ({
    makes: { at: SHARED, records: 0 },
    adds: 1,
    send: (client) => client.patch(`${SHARED}/tables/sums/all`, increment, { headers: { "idempotency-key": key } }),
  }),
];

const post = (path: string, body: JsonValue, key: string, makes: Write["makes"], adds: number): Omit<Write, "key"> => ({
  makes,
  adds,
  send: (client) => client.post(path, body, { headers: { "idempotency-key": key } }),
});

const shown = ({ status, body, headers }: Answer<JsonObject>) => [status, headers.get("idempotent-replay"), body];

/** Sends until it is answered: a write may still be under way when its connection has broken. */
async function settled(client: HttpClient, write: Write): Promise<Answer<JsonObject>> {
  for (;;) {
    const answer = await write.send(client);
    if (answer.status !== 409) return answer;
  }
}

async function countKeys(client: HttpClient, at: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  let after = "";
  for (;;) {
    const query: Record<string, string | number> = after === "" ? { limit: 1_000 } : { limit: 1_000, after };
    const { body } = await client.get<ListAnswer>(`${at}/tables/entries`, { query });
    for (const { key } of body.items) counts.set(String(key), (counts.get(String(key)) ?? 0) + 1);
    if (body.cursor === null) return counts;
    after = body.cursor;
  }
}

test(
  `[TB328] writes with keys under SIGKILL: every acknowledged answer is replayed, no write is done twice (seed ${SEED})`,
  async () => {
    const random = seeded(SEED);
    const platform: TestPlatform = await testPlatform({ config: CONFIG });
    const user = await signIn(platform);
    const clients = [platform.service, user];
    expect((await platform.service.post(`${SHARED}/tables/sums`, { id: "all" })).status).toBe(201);
    const all: Write[] = [];
    const answered = new Map<Write, { client: HttpClient; answer: Answer<JsonObject> }>();
    const unanswered = new Map<Write, HttpClient>();

    for (let round = 0; round < ROUNDS; round++) {
      let left = KILL_AFTER_ANSWERS.min + random.below(KILL_AFTER_ANSWERS.spread);
      let killed: Promise<unknown> | null = null;
      const writer = async (index: number): Promise<void> => {
        const client = clients[index % clients.length] ?? user;
        while (killed === null) {
          const key = `k${all.length}`;
          const write: Write = { key, ...random.pick(kinds)(key, `/api/db/rooms/r${random.below(4)}`) };
          all.push(write);
          unanswered.set(write, client);
          let answer: Answer<JsonObject>;
          try {
            answer = await write.send(client);
          } catch {
            // The connection broke: nobody knows whether the write was done.
            return;
          }
          expect(answer.status).toBeLessThan(300);
          unanswered.delete(write);
          answered.set(write, { client, answer });
          if (--left === 0) killed = platform.kill("SIGKILL");
        }
      };
      await Promise.all(Array.from({ length: WRITERS }, (_, index) => writer(index)));
      await killed;
      await platform.restart();
      for (const [write, client] of unanswered) {
        const answer = await settled(client, write);
        expect(answer.status).toBeLessThan(300);
        answered.set(write, { client, answer });
      }
      unanswered.clear();
      for (const [write, { client, answer }] of answered) {
        expect([write.key, ...shown(await write.send(client))]).toEqual([
          write.key,
          answer.status,
          "true",
          answer.body,
        ]);
      }
    }

    let sum = 0;
    for (const at of new Set(all.map(({ makes }) => makes.at))) {
      const counts = await countKeys(platform.service, at);
      for (const write of all.filter(({ makes }) => makes.at === at)) {
        expect([write.key, counts.get(write.key) ?? 0]).toEqual([write.key, write.makes.records]);
        sum += write.adds;
      }
    }
    expect((await platform.service.get(`${SHARED}/tables/sums/all`)).body["n"]).toBe(sum);
    await platform.stop();
  },
  ROUNDS * 60_000,
);
