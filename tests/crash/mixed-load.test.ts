import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { bytesOnDisk, until } from "../http/storage/storage-support.ts";
import {
  type ListAnswer,
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  type TestSocket,
  testPlatform,
} from "../support/index.ts";
import { random as seeded, testSeed } from "../support/random.ts";
import { attemptStart } from "../support/start-attempt.ts";
import { CONFIG } from "./config.ts";
import { faultsOfFiles } from "./files.ts";
import { type LateThings, noteSaved, nothingLate, PATIENCE_MS } from "./late.ts";
import { Ledger, RefusedError } from "./ledger.ts";
import { observe } from "./observe.ts";
import { KINDS, step } from "./writers.ts";

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 3);
const SEED = testSeed(4_711);
const LOAD_MIN_MS = 150;
const LOAD_SPREAD_MS = 700;
/** Answers of a round before the server dies, however slow the machine is. */
const ANSWERS_MIN = 50;
/** Longest time after which a start is killed as well. */
const START_KILL_MS = 300;
const SEARCHED_MAX = 20;
const SESSIONS = 3;
const tally = "/api/db/shared/tables/tallies";

const random = seeded(SEED);
const ledger = new Ledger();
let freshCount = 0;

/** Work beside the ledger, as several clients do it to the same thing. */
interface Beside {
  increments: { asked: number; answered: number };
  refreshTokens: string[];
  late: LateThings;
}

interface Load {
  isOver: boolean;
  /** An answer that no load should get. */
  errors: unknown[];
}

/** Repeats until the connection breaks, which is how the server's end is seen. */
async function repeat(load: Load, work: () => Promise<void>): Promise<void> {
  while (!load.isOver) {
    try {
      await work();
    } catch (cause) {
      if (cause instanceof RefusedError || !load.isOver) load.errors.push(cause);
      return;
    }
  }
}

function startLoad(platform: TestPlatform, beside: Beside, socket: TestSocket, token: string) {
  const load: Load = { isOver: false, errors: [] };
  const { service } = platform;
  const user = platform.as(token);
  const { room, events } = beside.late;
  const writers = Object.entries(KINDS).flatMap(([name, kind]) =>
    Array.from({ length: kind.writers }, (_, index) => {
      const prefix = `${name}${index}q`;
      // Of one length, as the last word of a search is a prefix.
      const fresh = () => `${prefix}${(freshCount++).toString(36).padStart(6, "0")}`;
      const context = { service, user, ledger, random: seeded(random.below(2 ** 31)), prefix, fresh };
      return repeat(load, () => step(name, kind, context));
    }),
  );
  const increment = async () => {
    beside.increments.asked++;
    const { status, body } = await service.patch(`${tally}/all`, { sum: { $op: "increment", value: 1 } });
    if (status !== 200) throw new RefusedError([], status, body);
    beside.increments.answered++;
  };
  const refresh = async (index: number) => {
    const refreshToken = beside.refreshTokens[index] ?? "";
    const { status, body } = await platform.post("/api/auth/refresh", { refreshToken });
    if (status !== 200) throw new RefusedError([], status, body);
    beside.refreshTokens[index] = String(body["refreshToken"]);
  };
  const act = async () => {
    room.asked++;
    room.answered = Number(((await action(socket, "add")) as JsonObject)["count"]);
  };
  const track = async () => {
    events.asked++;
    const { status, body } = await service.post("/api/analytics/track", { events: [{ name: "crashed" }] });
    if (status !== 200) throw new RefusedError([], status, body);
    events.answered++;
  };
  const others = [
    ...[repeat(load, increment), repeat(load, increment), repeat(load, act), repeat(load, track)],
    ...beside.refreshTokens.map((_, index) => repeat(load, () => refresh(index))),
  ];
  return { load, ended: Promise.all([...writers, ...others]) };
}

async function enterRoom(platform: TestPlatform, token: string): Promise<TestSocket> {
  const socket = await openSocket(`${platform.wsUrl}/api/room?namespace=game&id=one`);
  socket.send({ type: "auth", token });
  socket.send({ type: "join" });
  await socket.nextOf("sync");
  return socket;
}

async function action(socket: TestSocket, actionType: string) {
  socket.send({ type: "send", actionType, requestId: "1" });
  return (await socket.nextOf("action_result"))["result"];
}

async function compare(platform: TestPlatform, beside: Beside, userId: string): Promise<void> {
  const { service } = platform;
  const vectorIds = ledger.mentioned("vector/").map((thing) => thing.slice("vector/".length));
  expect(ledger.compare(await observe(service, { userId, vectorIds }))).toEqual([]);

  const sum = Number((await service.get(`${tally}/all`)).body["sum"]);
  expect(sum).toBeGreaterThanOrEqual(beside.increments.answered);
  expect(sum).toBeLessThanOrEqual(beside.increments.asked);

  const search = async (q: string) =>
    (await service.get<ListAnswer>("/api/db/shared/tables/notes/search", { query: { q, limit: 2 } })).body;
  const words = ledger.own("note/").flatMap((thing) => {
    const word = /^every (w\w+)/.exec(ledger.state(thing) ?? "")?.[1];
    return word === undefined ? [] : [{ word, thing }];
  });
  expect((await search("every")).total).toBe(words.length);
  for (const { word, thing } of words.slice(0, SEARCHED_MAX)) {
    expect((await search(word)).items.map(({ id }) => `note/${String(id)}`)).toEqual([thing]);
  }
  for (const [index, refreshToken] of beside.refreshTokens.entries()) {
    const { status, body } = await platform.post("/api/auth/refresh", { refreshToken });
    expect(status).toBe(200);
    beside.refreshTokens[index] = String(body["refreshToken"]);
  }
}

/** Checks that a state may be lost before it is on disk, and is never there by half. */
async function compareLate(platform: TestPlatform, socket: TestSocket, { room, events }: LateThings): Promise<void> {
  const [shared, server] = (await action(socket, "both")) as [number, number]; // as config.ts says
  expect(server).toBe(shared);
  const { body } = await platform.service.get("/api/analytics/events", { query: { metric: "count" } });
  for (const [thing, present] of [
    [room, shared],
    [events, Number(body["totalEvents"])],
  ] as const) {
    expect(present).toBeGreaterThanOrEqual(thing.saved);
    expect(present).toBeLessThanOrEqual(thing.asked);
    Object.assign(thing, { asked: present, answered: present });
  }
}

/** Checks that storage/ has the files that records name, once the sweep has passed. */
async function compareBytes(platform: TestPlatform): Promise<void> {
  const named = () => {
    const sqlite = new Database(join(platform.dataDirectory, "system.db"), { readonly: true });
    const rows = sqlite.query("SELECT fileId FROM storage_objects UNION ALL SELECT fileId FROM storage_parts").values();
    sqlite.close();
    return rows.flat().map(String).sort().join();
  };
  await until("bytes without a record are gone", () => bytesOnDisk(platform).sort().join() === named(), PATIENCE_MS);
}

test(
  `[TB66, DB24, ST80, RM33, AN5] a server killed under mixed load has everything it acknowledged, and nothing incomplete (seed ${SEED}, ${ROUNDS} rounds)`,
  async () => {
    const platform = await testPlatform({ config: CONFIG });
    await platform.service.post(tally, { id: "all", sum: 0 });
    await platform.service.post("/api/d1/main", { query: "CREATE TABLE t (id TEXT PRIMARY KEY, value TEXT)" });
    const users: SignedIn[] = [];
    for (let index = 0; index < SESSIONS; index++) users.push(await signIn(platform));
    const beside: Beside = {
      increments: { asked: 0, answered: 0 },
      refreshTokens: users.map(({ refreshToken }) => refreshToken),
      late: nothingLate(),
    };
    const token = users[0]?.token ?? "";
    let unansweredCount = 0;
    let socket = await enterRoom(platform, token);
    for (let round = 0; round < ROUNDS; round++) {
      const { load, ended } = startLoad(platform, beside, socket, token);
      const answersBefore = ledger.answeredCount;
      await Bun.sleep(LOAD_MIN_MS + random.below(LOAD_SPREAD_MS));
      await until("it is a load", () => ledger.answeredCount - answersBefore > ANSWERS_MIN, PATIENCE_MS);
      await noteSaved(platform, beside.late, random.chance(0.3));
      load.isOver = true;
      await platform.kill("SIGKILL");
      await ended;
      expect(load.errors).toEqual([]);
      unansweredCount += ledger.unansweredCount;
      const { files, faults } = faultsOfFiles(platform.dataDirectory);
      expect(faults).toEqual([]);
      expect(files).toBeGreaterThan(5);
      if (random.chance(0.3)) {
        const { configFile, dataDirectory } = platform;
        await attemptStart({ configFile, dataDirectory, killAfterMs: random.below(START_KILL_MS) });
      }
      await platform.restart();
      await compare(platform, beside, users[0]?.id ?? "");
      socket = await enterRoom(platform, token);
      await compareLate(platform, socket, beside.late);
    }
    await compareBytes(platform);
    // It was a load, and the server died in the middle of it.
    expect(ledger.answeredCount).toBeGreaterThan(ROUNDS * ANSWERS_MIN);
    expect(unansweredCount).toBeGreaterThan(ROUNDS);
    expect(await platform.stop()).toBe(0);
  },
  Math.max(600_000, ROUNDS * 30_000),
);
