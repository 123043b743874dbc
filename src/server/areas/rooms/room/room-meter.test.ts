import { expect, test } from "bun:test";
import { TURN_MS } from "../../../../kernel/limits.ts";
import { TurnBudget } from "../../../../kernel/time/turn-budget.ts";
import { ROOM_BURST_MS } from "../limits.ts";
import { RoomMeter } from "./room-meter.ts";

/** Time, and turns of the event loop, which advance on demand. */
function world() {
  let now = 0;
  const turns: (() => void)[] = [];
  const timers: { delayMs: number; work: () => void }[] = [];
  const share = new TurnBudget({ now: () => now, nextTurn: (turn) => void turns.push(turn) });
  return {
    share,
    meter: () => new RoomMeter(share, (delayMs, work) => timers.push({ delayMs, work })),
    pass(ms: number) {
      now += ms;
    },
    turn() {
      for (const turn of turns.splice(0)) turn();
    },
    timers,
  };
}

test("[RM101] rooms for which a turn has no time left run in later turns, in order of arrival", () => {
  const { meter, pass, turn } = world();
  const rooms = [meter(), meter(), meter()];
  const order: number[] = [];
  const run = (room: RoomMeter, index: number): void => {
    if (room.defers(() => run(room, index))) return;
    room.measure(() => pass(TURN_MS));
    order.push(index);
  };
  for (const [index, room] of rooms.entries()) run(room, index);
  expect(order).toEqual([0]);
  turn();
  expect(order).toEqual([0, 1]);
  turn();
  expect(order).toEqual([0, 1, 2]);
});

test("[RM101] a room that has used up its share waits until it is refilled, and other rooms do not", () => {
  const { meter, pass, turn, timers } = world();
  const [room, other] = [meter(), meter()];
  let resumed = 0;
  while (!room.defers(() => resumed++)) {
    room.measure(() => pass(ROOM_BURST_MS));
    turn();
  }
  expect(other.defers(() => {})).toBe(false);
  expect(resumed).toBe(0);
  const [timer] = timers;
  expect(timers.length).toBe(1);
  pass(timer?.delayMs ?? 0);
  timer?.work();
  expect(resumed).toBe(1);
  expect(room.defers(() => {})).toBe(false);
});

test("[RM101] work inside other work is charged once, and work that throws is charged too", () => {
  const { meter, pass, share } = world();
  const room = meter();
  const fail = (): void =>
    room.measure(() => {
      room.measure(() => pass(TURN_MS / 2 - 1));
      throw new Error("no");
    });
  expect(fail).toThrow("no");
  expect(share.hasTime).toBe(true);
  expect(fail).toThrow("no");
  expect(share.hasTime).toBe(true);
});
