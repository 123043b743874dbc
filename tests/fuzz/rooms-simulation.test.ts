import { expect, test } from "bun:test";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/kernel/json/json.ts";
import type { RoomsConfig } from "../../src/server/config/types.ts";
import { followDelta } from "../support/room-client.ts";
import { type RoomClient, type RoomsWorld, roomsWorld } from "../support/rooms-world.ts";

const STEPS = 250;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
const USERS = ["ann", "bob", "cid", "dan"];
const SAVE_INTERVAL_MS = 60_000;
/** The clock runs in steps while the file is written. */
const SAVE_SLACK_MS = 15_000;
const RECONNECT_MS = 30_000;

/** A small state machine of its own: the same numbers for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return (Math.imul(state ^ (state >>> 13), 3_266_489_917) >>> 0) % below;
  };
}

const numberOf = (value: JsonValue | undefined): number => (typeof value === "number" ? value : 0);
const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {});

/** Every handler is a pure function of state and payload, so that the model can say what has to be there. */
const config: RoomsConfig = {
  game: {
    messageRate: 1_000,
    saveInterval: SAVE_INTERVAL_MS,
    reconnectTimeout: RECONNECT_MS,
    access: { join: true },
    onCreate(room) {
      room.setShared({ total: 0, present: {}, board: { deep: { deeper: { deepest: { leaf: { n: 0 } } } } } });
    },
    onJoin(room, player) {
      room.setShared((state) => ({ ...state, present: { ...objectOf(state["present"]), [player.userId]: true } }));
    },
    onLeave(room, player) {
      room.setShared((state) => ({ ...state, present: { ...objectOf(state["present"]), [player.userId]: null } }));
    },
    actions: {
      add(room, player, payload) {
        const by = numberOf(objectOf(payload)["by"]);
        room.setShared((state) => ({ ...state, total: numberOf(state["total"]) + by }));
        room.setPlayer(player.userId, (state) => ({ ...state, mine: numberOf(state["mine"]) + by }));
        room.setServer((state) => ({ ...state, actions: numberOf(state["actions"]) + 1 }));
        return numberOf(room.shared["total"]);
      },
      grow(room, _player, payload) {
        const key = String(objectOf(payload)["key"]);
        room.setShared((draft) => {
          const leaf = objectOf(
            objectOf(objectOf(objectOf(objectOf(draft["board"])["deep"])["deeper"])["deepest"])["leaf"],
          );
          leaf[key] = leaf[key] === undefined ? { list: [1, null, { a: key }] } : null;
          return draft;
        });
        return null;
      },
      fail(room, player) {
        room.setShared({ wrong: true });
        room.setPlayer(player.userId, { wrong: true });
        room.send("wrong", {});
        room.setTimer("tick", 1, {});
        throw new Error("refused");
      },
      async slow(room) {
        room.setShared((state) => ({ ...state, slow: true }));
        await new Promise(() => {});
        return null;
      },
      later(room) {
        room.setTimer("tick", 20_000, { by: 1 });
        return null;
      },
      keep(room) {
        room.save();
        return null;
      },
    },
    timers: {
      tick(room, payload) {
        const by = numberOf(objectOf(payload)["by"]);
        room.setShared((state) => ({ ...state, ticks: numberOf(state["ticks"]) + by }));
      },
    },
  },
};

/** State that a client builds from its messages: the `sync`, and every delta after it. */
class Follower {
  readonly client: RoomClient;
  shared: JsonObject | null = null;
  player: JsonObject = {};
  sharedVersion = 0;
  playerVersion = 0;
  requested = 0;
  #read = 0;

  constructor(client: RoomClient) {
    this.client = client;
  }

  read(): void {
    for (; this.#read < this.client.messages.length; this.#read++) this.#take(this.client.messages[this.#read] ?? {});
  }

  #take(message: JsonObject): void {
    const version = numberOf(message["version"]);
    switch (message["type"]) {
      case "sync":
        this.shared = objectOf(message["sharedState"]);
        this.player = objectOf(message["playerState"]);
        this.sharedVersion = numberOf(message["sharedVersion"]);
        this.playerVersion = numberOf(message["playerVersion"]);
        break;
      case "shared_delta":
        expect(this.shared).not.toBeNull();
        expect(version).toBe(this.sharedVersion + 1);
        this.sharedVersion = version;
        this.shared = followDelta(this.shared ?? {}, objectOf(message["delta"]));
        break;
      case "player_delta":
        expect(version).toBe(this.playerVersion + 1);
        this.playerVersion = version;
        this.player = followDelta(this.player, objectOf(message["delta"]));
        break;
      case "message":
        throw new Error("a message of a handler that failed");
    }
  }
}

interface Model {
  at: number;
  total: number;
  mine: Map<string, number>;
}

const copyOf = (model: Model, at: number): Model => ({ at, total: model.total, mine: new Map(model.mine) });

async function simulate(seed: number): Promise<void> {
  const pick = random(seed);
  const world = await roomsWorld(config);
  const followers = new Set<Follower>();
  let now: Model = { at: world.clock.now(), total: 0, mine: new Map() };
  /** States that a crash may go back to: the last one that was saved for certain, and all after it. */
  let since: Model[] = [copyOf(now, now.at)];
  const survivors = (): Model[] => {
    const savedBefore = world.clock.now() - SAVE_INTERVAL_MS - SAVE_SLACK_MS;
    const oldest = since.findLastIndex(({ at }) => at <= savedBefore);
    return since.slice(Math.max(0, oldest));
  };
  let requestId = 0;

  const joined = (): Follower[] => [...followers].filter((one) => one.client.closed === null);
  const anyone = (): Follower | null => joined()[pick(Math.max(1, joined().length))] ?? null;
  const act = (follower: Follower, actionType: string, payload: JsonObject = {}): void => {
    follower.client.send({ type: "send", actionType, payload, requestId: String(++requestId) });
  };
  const answer = (follower: Follower): JsonObject | undefined =>
    follower.client.messages.findLast((message) => message["requestId"] === String(requestId));
  /** After the deltas are out, every client has the same state, and that is the model's. */
  const check = async (): Promise<void> => {
    await world.advance(60);
    for (const follower of joined()) {
      follower.read();
      expect(follower.shared?.["total"]).toBe(now.total);
      expect(numberOf(follower.player["mine"])).toBe(now.mine.get(follower.client.userId) ?? 0);
      expect(follower.shared?.["wrong"]).toBeUndefined();
      expect(follower.shared?.["slow"]).toBeUndefined();
      expect(objectOf(follower.shared?.["present"])[follower.client.userId]).toBe(true);
      expect(follower.shared).toEqual(joined()[0]?.shared ?? null);
      expect(follower.sharedVersion).toBe(joined()[0]?.sharedVersion ?? 0);
    }
  };
  const enter = async (userId: string): Promise<void> => {
    const follower = new Follower(await world.connect(userId));
    await follower.client.enter();
    followers.add(follower);
    await world.advance(60);
    expect(follower.client.of("sync").length).toBe(1);
  };

  for (let step = 0; step < STEPS; step++) {
    const follower = anyone();
    const choice = pick(100);
    if (choice < 18 || follower === null) {
      if (joined().length < 6) await enter(USERS[pick(USERS.length)] ?? "ann");
    } else if (choice < 50) {
      const by = pick(9) + 1;
      act(follower, "add", { by });
      now.total += by;
      const { userId } = follower.client;
      now.mine.set(userId, (now.mine.get(userId) ?? 0) + by);
      since.push(copyOf(now, world.clock.now()));
      await world.settle();
      expect(answer(follower)).toMatchObject({ type: "action_result", result: now.total });
    } else if (choice < 58) {
      act(follower, "grow", { key: `k${pick(4)}` });
    } else if (choice < 64) {
      act(follower, "fail");
      await world.settle();
      expect(answer(follower)).toMatchObject({ type: "action_error", message: "refused" });
    } else if (choice < 67) {
      act(follower, "slow");
      await world.advance(5_001);
      expect(answer(follower)).toMatchObject({ type: "action_error" });
    } else if (choice < 70) {
      act(follower, "later");
    } else if (choice < 82) {
      await follower.client.close([1000, 1001, 1005, 1006, 1006, 1006][pick(6)] ?? 1006);
    } else if (choice < 90) {
      await world.advance([100, 10_000, 29_000, 31_000, 61_000, 301_000][pick(6)] ?? 100);
    } else if (choice < 93) {
      act(follower, "keep");
      await world.settle();
      now = copyOf(now, world.clock.now());
      since = [copyOf(now, now.at)];
    } else if (choice < 96) {
      await world.restart();
      now = copyOf(now, world.clock.now());
      since = [copyOf(now, now.at)];
    } else {
      const candidates = survivors();
      await world.crash();
      const saved = await totalAfterCrash(world);
      const survivor = candidates.find((model) => model.total === saved);
      expect(survivor).toBeDefined();
      now = copyOf(survivor ?? now, world.clock.now());
      since = [copyOf(now, now.at)];
    }
    await check();
  }
  expect(world.failures.filter(({ facts }) => facts["what"] !== "setShared")).toEqual([]);
  await world.stop();
}

/** State that the room shows to the first who comes after a crash. */
async function totalAfterCrash(world: RoomsWorld): Promise<number> {
  const follower = new Follower(await world.connect("ann"));
  await follower.client.enter();
  await world.advance(60);
  follower.read();
  const total = numberOf(follower.shared?.["total"]);
  await follower.client.close(1000);
  return total;
}

for (const seed of SEEDS) {
  test(`[RM40] a random run of clients, drops, restarts and crashes keeps to the model (seed ${seed})`, async () => {
    await simulate(seed);
  });
}
