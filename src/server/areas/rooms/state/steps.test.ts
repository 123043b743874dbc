import { expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { SavedRoom } from "../types.ts";
import { adoptState, SYNCED, stateBytes, UNSYNCED, valueBytes } from "./state.ts";
import { finishNow, restoreSteps, stateTextSteps } from "./steps.ts";

const wide = (count: number): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, { n, list: [n, [n]] }]));
const saved = (shared: JsonObject, server: JsonObject = {}): SavedRoom => ({
  shared: JSON.stringify(shared),
  sharedVersion: 7,
  players: JSON.stringify({ ann: { state: { cards: [1, null] }, version: 3 } }),
  server: JSON.stringify(server),
  metadata: { open: true },
  timers: { tick: { dueAt: 5, data: null } },
  present: [],
});
const countSteps = <T>(steps: Generator<void, T>): number => {
  let count = 0;
  while (steps.next().done !== true) count++;
  return count;
};

test("[RM102] a state is serialised in slices to what JSON.stringify makes of it", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.stringMatching(/^[a-d]{0,3}$/), fc.jsonValue()), (given) => {
      let state: JsonObject;
      try {
        state = adoptState(given, UNSYNCED);
      } catch {
        return; // a value that no state can be
      }
      expect(finishNow(stateTextSteps(state, UNSYNCED))).toBe(JSON.stringify(state));
    }),
  );
  const large = adoptState(
    { wide: wide(2_000), list: Array(9_000).fill(1), lists: [Array(9_000).fill("x"), []], none: {} },
    SYNCED,
  );
  expect(finishNow(stateTextSteps(large))).toBe(JSON.stringify(large));
  expect(countSteps(stateTextSteps(large))).toBeGreaterThan(1);
});

test("[RM34] a large room is restored in steps to what it was", () => {
  const server = { hidden: wide(5_000), kept: [{ a: null }] };
  const room = saved(wide(9_000), server);
  expect(countSteps(restoreSteps(room))).toBeGreaterThan(10);
  const state = finishNow(restoreSteps(room));
  expect(JSON.stringify(state.shared)).toBe(room.shared);
  expect(JSON.stringify(state.server)).toBe(room.server);
  expect(state.player("ann")).toEqual({ cards: [1, null] });
  expect([state.sharedVersion, state.playerVersion("ann")]).toEqual([7, 3]);
  expect(state.bytes).toBe(room.shared.length + JSON.stringify({ cards: [1, null] }).length);
  expect(stateBytes(state.server, UNSYNCED)).toBe(room.server.length);
  // Restored parts are shared by the states that follow, and not checked again.
  const next = adoptState({ ...state.shared, k1: 5 }, SYNCED, state.shared);
  expect(next["k2"]).toBe(state.shared["k2"] ?? null);
  expect(valueBytes(state.shared["k2"] ?? null, SYNCED)).toBe(JSON.stringify(state.shared["k2"]).length);
});

test("[RM100] a room that was saved with more members than can be parsed in slices is restored", () => {
  const state = finishNow(
    restoreSteps(saved(Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`k${n}`, n])))),
  );
  expect(Object.keys(state.shared).length).toBe(60_000);
});
