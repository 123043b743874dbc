import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { roomsLayout } from "../../../../../schema/migrations/index.ts";
import { settle, temporaryDirectory, testClock } from "../../../../../tests/support/index.ts";
import { systemClock } from "../../../../kernel/clock.ts";
import { createStorageEngine, layOut } from "../../../db/index.ts";
import { WakeSchedule } from "./schedules.ts";
import { RoomStore, type RoomToSave } from "./store.ts";

const engine = createStorageEngine({ clock: systemClock });
const clock = testClock();
const failures: unknown[] = [];
let stop = (): void => {};
afterEach(() => stop());

const room = (namespace: string, id: string, dueInMs: number): RoomToSave => ({
  namespace,
  id,
  shared: "{}",
  sharedVersion: 0,
  players: "{}",
  server: "{}",
  metadata: {},
  present: [],
  timers: { tick: { dueAt: clock.now() + dueInMs, data: null } },
  savedAt: clock.now(),
  expiresAt: clock.now() + 1_000_000,
});

/** Records the rooms that are woken, none of which gets into memory. */
function watch(store: Pick<RoomStore, "timed">): string[] {
  const woken: string[] = [];
  const schedule = new WakeSchedule({
    store,
    clock,
    namespaces: ["game", "quiz"],
    isInMemory: () => false,
    wake: ({ namespace, id }) => woken.push(`${namespace}/${id}`) > 0,
    onFailure: (cause) => failures.push(cause),
  });
  schedule.expect(clock.now());
  stop = () => schedule.stop();
  return woken;
}

async function storeOf(...rooms: RoomToSave[]): Promise<RoomStore> {
  const store = new RoomStore(engine.open(join(temporaryDirectory(), "rooms.db"), { migrate: layOut(roomsLayout) }));
  await Promise.all(rooms.map((one) => store.save(one)));
  return store;
}

test("[RM41] rooms of an undeclared namespace delay no others, and are not read again and again", async () => {
  const undeclared = Array.from({ length: 250 }, (_, index) => room("old", `room${index}`, 0));
  const store = await storeOf(...undeclared, room("quiz", "late", 500), room("game", "soon", 10));
  const woken = watch(store);
  await clock.advanceAsync(50);
  expect(woken).toEqual(["game/soon"]);
  // Only the timer of the next due room waits, and no further work.
  expect(clock.waiting).toBe(1);
  await clock.advanceAsync(1_000);
  await settle();
  expect(woken.filter((one) => one === "quiz/late").length).toBe(1);
  expect(clock.waiting).toBe(0);
  expect(failures).toEqual([]);
});

test("[RM41] more rooms than one turn wakes are all tried, also when there is no place for them", async () => {
  const rooms = Array.from({ length: 250 }, (_, index) => room("game", `room${index}`, -index));
  const woken = watch(await storeOf(...rooms));
  await clock.advanceAsync(10);
  expect(new Set(woken).size).toBe(250);
  expect(woken.length).toBe(250);
  expect(clock.waiting).toBe(0);
});

test("[RM27] rooms that are due are woken after the file could not be read for a while", async () => {
  const store = await storeOf(room("game", "soon", 10));
  let tries = 0;
  const woken = watch({
    timed(...given) {
      if (tries++ < 3) throw new Error("disk I/O error");
      return store.timed(...given);
    },
  });
  await clock.advanceAsync(10_000);
  expect(failures.splice(0)).toHaveLength(3);
  expect(woken).toContain("game/soon");
});
