import { LRUCache } from "lru-cache";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { STATE_SLICE_BYTES, SYNC_AT_ONCE_BYTES, SYNC_TEXT_TTL_MS, SYNC_TEXTS_MAX_CHARS } from "../limits.ts";
import type { RoomMeter } from "../room/room-meter.ts";
import { type StateKind, SYNCED, valueBytes } from "./state.ts";

/** Short items of an array that are serialised in one step. */
const ITEMS_PER_STEP = 256;

/** JSON of synced states. A large state is serialised in slices, once for all connections. */
export class StateTexts {
  /** By state: a state never changes. */
  readonly #recent = new LRUCache<JsonObject, string>({
    maxSize: SYNC_TEXTS_MAX_CHARS,
    sizeCalculation: (text) => text.length,
    ttl: SYNC_TEXT_TTL_MS,
    ttlAutopurge: true,
    updateAgeOnGet: true,
  });

  /** At once where they are short together, or were serialised lately. The work is charged to the room. */
  of(states: ReadonlySet<JsonObject>, meter: RoomMeter): MaybePromise<Map<JsonObject, string>> {
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

  async #addTo(texts: Map<JsonObject, string>, states: readonly JsonObject[], meter: RoomMeter) {
    for (const state of states) texts.set(state, await this.#make(state, meter));
    return texts;
  }

  async #make(state: JsonObject, meter: RoomMeter): Promise<string> {
    await meter.ready();
    const text = await meter.run(stateTextSteps(state));
    this.#recent.set(state, text);
    return text;
  }
}

/** `JSON.stringify` of an adopted state, in steps of some STATE_SLICE_BYTES. */
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
