import { LRUCache } from "lru-cache";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import { STATE_SLICE_BYTES, SYNC_AT_ONCE_BYTES, SYNC_TEXT_TTL_MS, SYNC_TEXTS_MAX_CHARS } from "./limits.ts";
import type { RoomMeter } from "./room-meter.ts";
import { SYNCED, valueBytes } from "./state.ts";

/** Items of an array that are serialised in one step where each of them is short. */
const ITEMS_PER_STEP = 256;

/** JSON of synced states. A large one is made in slices, once for all who want it. */
export class StateTexts {
  /** By the state itself, which never changes. */
  readonly #recent = new LRUCache<JsonObject, string>({
    maxSize: SYNC_TEXTS_MAX_CHARS,
    sizeCalculation: (text) => text.length,
    ttl: SYNC_TEXT_TTL_MS,
    ttlAutopurge: true,
    updateAgeOnGet: true,
  });

  /** At once where all of them are short or known. The work is charged to the room. */
  of(states: ReadonlySet<JsonObject>, meter: RoomMeter): MaybePromise<Map<JsonObject, string>> {
    const texts = new Map<JsonObject, string>();
    const missing: JsonObject[] = [];
    for (const state of states) {
      const isShort = valueBytes(state, SYNCED) <= SYNC_AT_ONCE_BYTES;
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
    const steps = stateTextSteps(state);
    let text: string | null = null;
    while (text === null) {
      await meter.turn();
      const step = meter.measure(() => steps.next());
      if (step.done === true) text = step.value;
    }
    this.#recent.set(state, text);
    return text;
  }
}

/** `JSON.stringify` of an adopted state; a step makes some STATE_SLICE_BYTES of it. */
export function* stateTextSteps(state: JsonObject): Generator<void, string> {
  const parts: string[] = [];
  let stepChars = 0;
  function* add(text: string): Generator<void> {
    parts.push(text);
    stepChars += text.length;
    if (stepChars < STATE_SLICE_BYTES) return;
    stepChars = 0;
    yield;
  }
  function* addValue(value: JsonValue): Generator<void> {
    if (typeof value !== "object" || value === null || valueBytes(value, SYNCED) <= STATE_SLICE_BYTES) {
      yield* add(JSON.stringify(value));
    } else if (Array.isArray(value)) yield* addItems(value);
    else yield* addMembers(value);
  }
  function* addMembers(object: JsonObject): Generator<void> {
    let separator = "{";
    for (const key of Object.keys(object)) {
      parts.push(separator, JSON.stringify(key), ":");
      separator = ",";
      yield* addValue(object[key] ?? null);
    }
    parts.push("}");
  }
  function* addItems(items: readonly JsonValue[]): Generator<void> {
    let separator = "[";
    for (let start = 0; start < items.length; start += ITEMS_PER_STEP) {
      const some = items.slice(start, start + ITEMS_PER_STEP);
      if (some.every((item) => valueBytes(item, SYNCED) * ITEMS_PER_STEP <= STATE_SLICE_BYTES)) {
        parts.push(separator);
        yield* add(JSON.stringify(some).slice(1, -1));
      } else {
        for (const item of some) {
          parts.push(separator);
          separator = ",";
          yield* addValue(item);
        }
      }
      separator = ",";
    }
    parts.push("]");
  }
  yield* addMembers(state);
  return parts.join("");
}
