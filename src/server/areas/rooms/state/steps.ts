import { LRUCache } from "lru-cache";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { JsonRefused, parseInSlices } from "../../../../kernel/json/slices.ts";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { SYNC_AT_ONCE_BYTES, SYNC_TEXT_TTL_MS, SYNC_TEXTS_MAX_CHARS } from "../limits.ts";
import type { SavedRoom } from "../types.ts";
import { type RoomSnapshot, RoomState } from "./room-state.ts";
import { adoptPart, adoptState, type StateKind, SYNCED, stored, UNSYNCED, valueBytes } from "./state.ts";

// Large states are serialised and restored in steps, over several turns of the event loop.

/** Bytes of JSON of a large state serialised in one step. */
const STATE_SLICE_BYTES = 32 * 1024;
/** Values of a saved state restored in one step. */
const RESTORED_VALUES_PER_STEP = 2_000;
/** Short items of an array serialised in one step. */
const ITEMS_PER_STEP = 256;

/** Runs the steps, and charges their time. */
interface StepRunner {
  /** Resolves when there is time for more work. */
  ready(): Promise<void>;
  run<T>(steps: Generator<void, T>): Promise<T>;
}

/** JSON of synced states. A large state is serialised in slices, once for all connections. */
export class StateTexts {
  /** Texts by state, which is immutable. */
  readonly #recent = new LRUCache<JsonObject, string>({
    maxSize: SYNC_TEXTS_MAX_CHARS,
    sizeCalculation: (text) => text.length,
    ttl: SYNC_TEXT_TTL_MS,
    ttlAutopurge: true,
    updateAgeOnGet: true,
  });

  /** Serialises states: at once when they are short together, or were serialised recently. */
  of(states: ReadonlySet<JsonObject>, meter: StepRunner): MaybePromise<Map<JsonObject, string>> {
    const texts = new Map<JsonObject, string>();
    const missing: JsonObject[] = [];
    let bytes = 0;
    for (const state of states) {
      bytes += valueBytes(state, SYNCED);
      const isShort = bytes <= SYNC_AT_ONCE_BYTES;
      const text = isShort ? JSON.stringify(state) : this.#recent.get(state);
      if (text === undefined) missing.push(state);
      else texts.set(state, text);
    }
    return missing.length === 0 ? texts : this.#addTo(texts, missing, meter);
  }

  async #addTo(texts: Map<JsonObject, string>, states: readonly JsonObject[], meter: StepRunner) {
    for (const state of states) texts.set(state, await this.#make(state, meter));
    return texts;
  }

  async #make(state: JsonObject, meter: StepRunner): Promise<string> {
    await meter.ready();
    const text = await meter.run(stateTextSteps(state));
    this.#recent.set(state, text);
    return text;
  }
}

/** Serialises an adopted state as `JSON.stringify` does, in steps of about STATE_SLICE_BYTES. */
export function* stateTextSteps(state: JsonObject, kind: StateKind = SYNCED): Generator<void, string> {
  const parts: string[] = [];
  let stepChars = 0;
  function* add(text: string): Generator<void> {
    parts.push(text);
    stepChars += text.length;
    if (stepChars < STATE_SLICE_BYTES) return;
    stepChars = 0;
    yield;
  }
  function* addValue(value: JsonValue, inside: StateKind): Generator<void> {
    if (typeof value !== "object" || value === null || valueBytes(value, inside) <= STATE_SLICE_BYTES) {
      yield* add(JSON.stringify(value));
    } else if (Array.isArray(value)) yield* addItems(value, inside.inArrays ?? inside);
    else yield* addMembers(value, inside);
  }
  function* addMembers(object: JsonObject, inside: StateKind): Generator<void> {
    let separator = "{";
    for (const key of Object.keys(object)) {
      parts.push(separator, JSON.stringify(key), ":");
      separator = ",";
      yield* addValue(object[key] ?? null, inside);
    }
    parts.push(separator === "{" ? "{}" : "}");
  }
  function* addItems(items: readonly JsonValue[], inside: StateKind): Generator<void> {
    let separator = "[";
    for (let start = 0; start < items.length; start += ITEMS_PER_STEP) {
      const some = items.slice(start, start + ITEMS_PER_STEP);
      if (some.every((item) => valueBytes(item, inside) * ITEMS_PER_STEP <= STATE_SLICE_BYTES)) {
        parts.push(separator);
        yield* add(JSON.stringify(some).slice(1, -1));
      } else {
        for (const item of some) {
          parts.push(separator);
          separator = ",";
          yield* addValue(item, inside);
        }
      }
      separator = ",";
    }
    parts.push("]");
  }
  yield* addMembers(state, kind);
  return parts.join("");
}

/** Counts the characters of the JSON of a saved room. */
export const savedChars = ({ shared, players, server }: SavedRoom): number =>
  shared.length + players.length + server.length;

/** Runs all steps at once. */
export function finishNow<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Restores the state of a saved room, in short steps. */
export function* restoreSteps(saved: SavedRoom): Generator<void, RoomState> {
  const shared = yield* stateSteps(saved.shared, stored(SYNCED));
  const server = yield* stateSteps(saved.server, stored(UNSYNCED));
  const players: RoomSnapshot["players"][number][] = [];
  const savedPlayers = yield* parseSteps(saved.players);
  for (const [userId, player] of Object.entries(savedPlayers)) {
    if (!isJsonObject(player) || !isJsonObject(player["state"]))
      throw new Error(`The player ${userId} was saved without a state`);
    const state = yield* adoptSteps(player["state"], stored(SYNCED));
    players.push({ userId, state, version: Number(player["version"]) });
    yield;
  }
  const metadata = adoptState(saved.metadata, stored(UNSYNCED));
  return RoomState.restore({
    shared,
    sharedVersion: saved.sharedVersion,
    players,
    server,
    metadata,
    timers: new Map(Object.entries(saved.timers)),
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

/** Adopts a state as `adoptState` does, in steps: its parts first. Mutates `state`, which must have no other references. */
function* adoptSteps(state: JsonObject, kind: StateKind): Generator<void, JsonObject> {
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
  // An adopted object is an object.
  return (yield* take(state, kind, 1)) as JsonObject;
}
