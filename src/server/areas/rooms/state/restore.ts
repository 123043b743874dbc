import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { JsonRefused, parseInSlices } from "../../../../kernel/json/slices.ts";
import { RESTORED_VALUES_PER_STEP, SYNC_AT_ONCE_BYTES } from "../limits.ts";
import type { SavedRoom } from "../types.ts";
import { RoomState } from "./room-state.ts";
import { adoptPart, adoptState, type StateKind, SYNCED, stored, UNSYNCED } from "./state.ts";

/** Characters of the JSON of a saved room. */
export const savedChars = ({ shared, players, server }: SavedRoom): number =>
  shared.length + players.length + server.length;

/** Runs all steps at once. */
export function finishNow<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Restores the state of a saved room, in steps that take a moment each. */
export function* restoreSteps(saved: SavedRoom): Generator<void, RoomState> {
  const shared = yield* stateSteps(saved.shared, stored(SYNCED));
  const server = yield* stateSteps(saved.server, stored(UNSYNCED));
  const players = new Map<string, { state: JsonObject; version: number }>();
  const savedPlayers = yield* parseSteps(saved.players);
  for (const [userId, player] of Object.entries(savedPlayers)) {
    if (!isJsonObject(player) || !isJsonObject(player["state"]))
      throw new Error(`The player ${userId} was saved without a state`);
    const state = yield* adoptSteps(player["state"], stored(SYNCED));
    players.set(userId, { state, version: Number(player["version"]) });
    yield;
  }
  const metadata = adoptState(saved.metadata, stored(UNSYNCED));
  return RoomState.restore({
    shared,
    sharedVersion: saved.sharedVersion,
    players,
    server,
    metadata,
    timers: saved.timers,
  });
}

function* stateSteps(text: string, kind: StateKind): Generator<void, JsonObject> {
  return yield* adoptSteps(yield* parseSteps(text), kind);
}

function* parseSteps(text: string): Generator<void, JsonObject> {
  if (text.length < SYNC_AT_ONCE_BYTES) return JSON.parse(text);
  try {
    const value = yield* parseInSlices(text);
    if (isJsonObject(value)) return value;
  } catch (cause) {
    // An earlier version saved objects with more members than `parseInSlices` accepts.
    if (!(cause instanceof JsonRefused)) throw cause;
  }
  return JSON.parse(text);
}

/** `adoptState` in steps: its parts first. Changes `state`, which must have no other references. */
export function* adoptSteps(state: JsonObject, kind: StateKind): Generator<void, JsonObject> {
  let count = 0;
  function* take(value: JsonObject | JsonValue[], inside: StateKind, depth: number): Generator<void, JsonValue> {
    const ofMembers = Array.isArray(value) ? (inside.inArrays ?? inside) : inside;
    // An array's keys are its indexes.
    const members = value as JsonObject;
    for (const key of Object.keys(value)) {
      const member = members[key];
      if (typeof member !== "object" || member === null || key === "__proto__") continue;
      members[key] = yield* take(member, ofMembers, depth + 1);
      if (count < RESTORED_VALUES_PER_STEP) continue;
      count = 0;
      yield;
    }
    count += Object.keys(value).length + 1;
    return adoptPart(value, inside, depth);
  }
  // Adopting an object gives an object.
  return (yield* take(state, kind, 1)) as JsonObject;
}
