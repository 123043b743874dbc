import { current, isDraft } from "immer";
import { JSON_DEPTH_MAX, type JsonObject, type JsonValue } from "../kernel/json.ts";

/** Of a value's JSON. */
interface Measure {
  bytes: number;
  /** Levels of nesting; 0 for what is no object. */
  height: number;
}

/**
 * What a state may hold. `adopted` knows every object that has been taken in: it is frozen and checked, and states share it
 * by reference, so that a change costs what it changes and not what the state holds.
 */
interface StateKind {
  allowsDots: boolean;
  adopted: WeakMap<object, Measure>;
}

/** States that clients see: keys become segments of dot-paths. */
export const SYNCED: StateKind = { allowsDots: false, adopted: new WeakMap() };
/** Server state and metadata: no delta ever names their keys. */
export const UNSYNCED: StateKind = { allowsDots: true, adopted: new WeakMap() };

/**
 * `next` as a state: JSON, deeply frozen, without keys that are null (a key set to null is absent; in arrays null stays).
 * Parts that were adopted before are shared. Errors: a key with a dot or `__proto__`, a value that JSON does not have,
 * nesting beyond 64 levels. Decisions 9.
 */
export function adoptState(next: unknown, kind: StateKind): JsonObject {
  const value = isDraft(next) ? current(next) : next;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`A state must be an object, got ${describe(value)}`);
  }
  // Adopting an object gives an object.
  return adopt(value, kind, 1) as JsonObject;
}

/** Bytes of its JSON; only for what `adoptState` returned, where it costs nothing. */
export function stateBytes(state: JsonObject, kind: StateKind): number {
  return kind.adopted.get(state)?.bytes ?? 0;
}

function adopt(value: unknown, kind: StateKind, depth: number): JsonValue {
  if (typeof value === "number") {
    // JSON has no negative zero.
    if (Number.isFinite(value)) return value === 0 ? 0 : value;
    throw new Error(`State is JSON, which has no ${value}`);
  }
  if (typeof value === "string" || typeof value === "boolean" || value === null) return value;
  if (typeof value !== "object") throw new Error(`State is JSON, which has no ${describe(value)}`);
  const known = kind.adopted.get(value);
  if (depth + (known?.height ?? 1) - 1 > JSON_DEPTH_MAX) {
    throw new Error(`State must not nest deeper than ${JSON_DEPTH_MAX} levels`);
  }
  // What has a measure is JSON already: only the functions below give one.
  if (known !== undefined) return value as JsonObject;
  if (isDraft(value)) return adopt(current(value), kind, depth);
  if (Array.isArray(value)) return adoptArray(value, kind, depth);
  if ("toJSON" in value && typeof value.toJSON === "function") return adopt(value.toJSON(), kind, depth + 1);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new Error(`State is JSON, which has no ${describe(value)}`);
  }
  return adoptObject(value, kind, depth);
}

function adoptArray(items: readonly unknown[], kind: StateKind, depth: number): JsonValue[] {
  let bytes = 2 + Math.max(0, items.length - 1);
  let height = 0;
  const adopted: JsonValue[] = [];
  for (const item of items) {
    const value = item === undefined ? null : adopt(item, kind, depth + 1);
    const measure = measureOf(value, kind);
    bytes += measure.bytes;
    height = Math.max(height, measure.height);
    adopted.push(value);
  }
  kind.adopted.set(adopted, { bytes, height: height + 1 });
  Object.freeze(adopted);
  return adopted;
}

/** A copy, because the handler may go on with its own object; only what is not adopted yet is looked into. */
function adoptObject(members: object, kind: StateKind, depth: number): JsonObject {
  let bytes = 1;
  let height = 0;
  const adopted: Record<string, unknown> = { ...members };
  for (const key of Object.keys(adopted)) {
    if (key === "__proto__") throw new Error(`A key of a state must not be "__proto__"`);
    if (!kind.allowsDots && key.includes(".")) throw new Error(`A key of a state must not contain a dot, got "${key}"`);
    const member = adopted[key];
    const value = member === undefined ? null : adopt(member, kind, depth + 1);
    if (value === null) {
      delete adopted[key];
      continue;
    }
    if (!Object.is(value, member)) adopted[key] = value;
    const measure = measureOf(value, kind);
    bytes += stringBytes(key) + 2 + measure.bytes;
    if (measure.height > height) height = measure.height;
  }
  kind.adopted.set(adopted, { bytes: Math.max(2, bytes), height: height + 1 });
  // Every member is a JsonValue now.
  return Object.freeze(adopted) as JsonObject;
}

const NOTHING: Measure = { bytes: 4, height: 0 };

function measureOf(value: JsonValue, kind: StateKind): Measure {
  if (typeof value === "object") return (value === null ? undefined : kind.adopted.get(value)) ?? NOTHING;
  if (typeof value === "string") return { bytes: stringBytes(value), height: 0 };
  return { bytes: String(value).length, height: 0 };
}

const PLAIN = /^[ !#-[\]-~]*$/;

function stringBytes(text: string): number {
  return PLAIN.test(text) ? text.length + 2 : Buffer.byteLength(JSON.stringify(text));
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "object" ? (value.constructor?.name ?? "object") : typeof value;
}
