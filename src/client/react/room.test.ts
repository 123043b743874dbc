import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { Room, Rooms } from "../rooms/types.ts";
import { PlatformError } from "../transport/errors.ts";
import { createRoomStore } from "./room.ts";

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Rooms that record each join, leave and action, and reply with `answer`. */
function countedRooms(answer: { join(): Promise<void>; act(): Promise<unknown> }) {
  const counts = { joined: 0, left: 0 };
  const room = {
    status: "joined",
    error: null,
    shared: {},
    mine: {},
    players: [],
    subscribe: () => () => {},
    on: () => () => {},
    leave: () => void counts.left++,
    act: () => answer.act(),
  };
  const rooms = {
    async join() {
      await answer.join();
      counts.joined++;
      return room as unknown as Room<unknown>;
    },
  };
  return { counts, store: createRoomStore(rooms as unknown as Rooms<unknown>, "one") };
}

const turns = async () => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

test("[TC117] an action without a subscriber joins the room, and leaves it after its answer", async () => {
  const answer = Promise.withResolvers<string>();
  const { counts, store } = countedRooms({ join: async () => {}, act: () => answer.promise });
  const acted = store.act("add" as never, {} as never) as Promise<unknown>;
  await turns();
  jest.advanceTimersByTime(60_000);
  expect(counts).toEqual({ joined: 1, left: 0 });
  answer.resolve("done");
  expect(await acted).toBe("done");
  await turns();
  jest.advanceTimersByTime(60_000);
  expect(counts).toEqual({ joined: 1, left: 1 });
});

test("[TC117] an action of a component that goes keeps the room until its answer", async () => {
  const answer = Promise.withResolvers<string>();
  const { counts, store } = countedRooms({ join: async () => {}, act: () => answer.promise });
  const stop = store.subscribe(() => {});
  await turns();
  stop();
  const acted = store.act("add" as never, {} as never) as Promise<unknown>;
  jest.advanceTimersByTime(60_000);
  await turns();
  expect(counts.left).toBe(0);
  answer.resolve("done");
  await acted;
  await turns();
  jest.advanceTimersByTime(60_000);
  expect(counts).toEqual({ joined: 1, left: 1 });
});

test("[TC117] a room that cannot be reached is not joined later, when nobody subscribes any more", async () => {
  const lost = Promise.withResolvers<void>();
  let tries = 0;
  const { counts, store } = countedRooms({
    join: () => (tries++ === 0 ? lost.promise : Promise.resolve()),
    act: async () => null,
  });
  store.subscribe(() => {})();
  lost.reject(new PlatformError({ status: 0, code: "network", message: "out of reach" }));
  await turns();
  jest.advanceTimersByTime(60_000);
  await turns();
  expect([tries, counts]).toEqual([1, { joined: 0, left: 0 }]);
});
