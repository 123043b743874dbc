import { current, isDraft } from "immer";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { JSON_DEPTH_MAX } from "../../../../kernel/limits.ts";
import { STATE_MEMBERS_MAX } from "../limits.ts";

/** Size of a value as JSON. */
interface Measure {
  bytes: number;
  /** Levels of nesting; 0 for a value other than an object or array. */
  height: number;
}

/**
 * Rules of a kind of state. `adopted` holds every adopted object: checked, measured and frozen. States share adopted objects by
 * reference, so that an update costs in proportion to its changes, not to the state.
 */
export interface StateKind {
  allowsDots: boolean;
  keepsNulls: boolean;
  /** Members of one object or array: an update of one member reads all the others. */
  membersMax: number;
  adopted: WeakMap<object, Measure>;
  /** Kind of objects within arrays; null for the same kind. */
  inArrays: StateKind | null;
}

/** States that clients see. Their keys become segments of dot-paths. */
export const SYNCED: StateKind = {
  allowsDots: false,
  keepsNulls: false,
  membersMax: STATE_MEMBERS_MAX,
  adopted: new WeakMap(),
  inArrays: null,
};
/** Server state and metadata. No delta names their keys, and objects within arrays keep null. */
export const UNSYNCED: StateKind = {
  allowsDots: true,
  keepsNulls: false,
  membersMax: STATE_MEMBERS_MAX,
  adopted: new WeakMap(),
  inArrays: {
    allowsDots: true,
    keepsNulls: true,
    membersMax: STATE_MEMBERS_MAX,
    adopted: new WeakMap(),
    inArrays: null,
  },
};

/** Returns the kind for saved states, which an earlier version may have saved with more members. */
export const stored = (kind: StateKind): StateKind => ({
  ...kind,
  membersMax: Number.POSITIVE_INFINITY,
  inArrays: kind.inArrays === null ? null : stored(kind.inArrays),
});

/**
 * Returns `next` as a state: JSON, deeply frozen, without keys whose value is null. Arrays keep null; in unsynced states, objects
 * within them do too. Adopted parts are shared, and members equal to those of `base`, the previous state, are not checked again.
 * Errors: a key with a dot or `__proto__`, a value outside JSON, nesting beyond 64 levels. [RM25]
 */
export function adoptState(next: unknown, kind: StateKind, base?: JsonObject): JsonObject {
  const value = isDraft(next) ? current(next) : next;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`A state must be an object, got ${describe(value)}`);
  }
  // An adopted object is an object.
  return adopt(value, kind, 1, base) as JsonObject;
}

/** Returns the bytes of an adopted state as JSON, without measuring it again. */
export function stateBytes(state: JsonObject, kind: StateKind): number {
  return kind.adopted.get(state)?.bytes ?? 0;
}

/** Adopts a part of a state at this depth (1 for the whole), as `adoptState` does. */
export const adoptPart = (part: JsonObject | JsonValue[], kind: StateKind, depth: number): JsonValue =>
  adopt(part, kind, depth);

/** Whether this adopted state is known to have no object or array as a member. false: not certain. */
export const isFlat = (state: JsonObject, kind: StateKind): boolean => kind.adopted.get(state)?.height === 1;

/** Returns the bytes of a part of an adopted state as JSON. */
export const valueBytes = (value: JsonValue, kind: StateKind): number => measureOf(value, kind).bytes;

function adopt(value: unknown, kind: StateKind, depth: number, base?: JsonValue): JsonValue {
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
  // A value with a measure is adopted JSON.
  if (known !== undefined) return value as JsonObject;
  if (isDraft(value)) return adopt(current(value), kind, depth, base);
  if (Array.isArray(value)) return adoptArray(value, kind, depth, Array.isArray(base) ? base.length : 0);
  if ("toJSON" in value && typeof value.toJSON === "function") return adopt(value.toJSON(), kind, depth + 1);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new Error(`State is JSON, which has no ${describe(value)}`);
  }
  return adoptObject(value, kind, depth, isJsonObject(base) && kind.adopted.has(base) ? base : EMPTY);
}

/** Checks the number of members. A saved state with too many may keep them, and shrink step by step. [RM100] */
function checkMembers(count: number, countBefore: number, kind: StateKind): void {
  if (count <= Math.max(kind.membersMax, countBefore)) return;
  throw new Error(`An object or array of a state has at most ${kind.membersMax} members, got ${count}`);
}

function adoptArray(items: readonly unknown[], kind: StateKind, depth: number, countBefore: number): JsonValue[] {
  checkMembers(items.length, countBefore, kind);
  if (items.length === 0) {
    kind.adopted.set(EMPTY_ARRAY, EMPTY_MEASURE);
    return EMPTY_ARRAY;
  }
  let bytes = 2 + Math.max(0, items.length - 1);
  let height = 0;
  const adopted: JsonValue[] = [];
  const inside = kind.inArrays ?? kind;
  for (const item of items) {
    const value = item === undefined ? null : adopt(item, inside, depth + 1);
    adopted.push(value);
    if (typeof value === "number") {
      bytes += numberBytes(value);
      continue;
    }
    const measure = measureOf(value, inside);
    bytes += measure.bytes;
    if (measure.height > height) height = measure.height;
  }
  kind.adopted.set(adopted, { bytes, height: height + 1 });
  Object.freeze(adopted);
  return adopted;
}

/** Shared empty array: freezing an array takes a microsecond. */
const EMPTY_ARRAY = Object.freeze<JsonValue[]>([]) as JsonValue[]; // Frozen, as every array of a state is.
const EMPTY: JsonObject = Object.freeze({});

/**
 * Adopts a copy, because the handler may change its own object later. Its size is computed from that of `base` and the members
 * that differ: of thousands of keys, one action changes a few.
 */
function adoptObject(members: object, kind: StateKind, depth: number, base: JsonObject): JsonObject {
  const known = kind.adopted.get(base) ?? EMPTY_MEASURE;
  const adopted: Record<string, unknown> = { ...members };
  const keys = Object.keys(adopted);
  if (keys.length > kind.membersMax) checkMembers(keys.length, Object.keys(base).length, kind);
  let entryBytes = known.bytes === EMPTY_MEASURE.bytes ? 0 : known.bytes - 1;
  // An upper bound: the member that made `base` so high may be gone.
  let height = known.height - 1;
  let inherited = 0;
  for (const key of keys) {
    const member = adopted[key];
    const older = base[key];
    if (older === member && typeof member !== "function" && key !== "__proto__" && member !== undefined) {
      inherited++;
      continue;
    }
    checkKey(key, kind);
    const replaces = Object.hasOwn(base, key);
    const value = member === undefined ? null : adopt(member, kind, depth + 1, replaces ? older : undefined);
    if (replaces) {
      inherited++;
      entryBytes -= bytesOfEntry(key, older ?? null, kind);
    }
    if (member === undefined || (value === null && !kind.keepsNulls)) {
      delete adopted[key];
      continue;
    }
    if (!Object.is(value, member)) adopted[key] = value;
    entryBytes += bytesOfEntry(key, value, kind);
    height = Math.max(height, measureOf(value, kind).height);
  }
  const baseKeys = Object.keys(base);
  if (inherited < baseKeys.length) {
    for (const key of baseKeys) {
      // Keys that were set to null are subtracted above.
      if (!Object.hasOwn(members, key)) entryBytes -= bytesOfEntry(key, base[key] ?? null, kind);
    }
  }
  kind.adopted.set(adopted, { bytes: entryBytes === 0 ? EMPTY_MEASURE.bytes : entryBytes + 1, height: height + 1 });
  // Every member is a JsonValue by now.
  return Object.freeze(adopted) as JsonObject;
}

function checkKey(key: string, kind: StateKind): void {
  if (key === "__proto__") throw new Error(`A key of a state must not be "__proto__"`);
  if (!kind.allowsDots && key.includes(".")) throw new Error(`A key of a state must not contain a dot, got "${key}"`);
}

/** Returns the bytes of an entry with its colon and a comma; the comma that the last entry lacks counts as one of the braces. */
const bytesOfEntry = (key: string, value: JsonValue, kind: StateKind): number =>
  stringBytes(key) + 2 + measureOf(value, kind).bytes;

const EMPTY_MEASURE: Measure = { bytes: 2, height: 1 };
const NOTHING: Measure = { bytes: 4, height: 0 };

function measureOf(value: JsonValue, kind: StateKind): Measure {
  if (typeof value === "object") return (value === null ? undefined : kind.adopted.get(value)) ?? NOTHING;
  if (typeof value === "string") return { bytes: stringBytes(value), height: 0 };
  return { bytes: typeof value === "number" ? numberBytes(value) : String(value).length, height: 0 };
}

/** Returns the bytes of a number as JSON. Short whole numbers, the most frequent ones, are not formatted. */
function numberBytes(value: number): number {
  if (!Number.isInteger(value) || value < 0 || value >= 1_000_000) return String(value).length;
  if (value < 1_000) return value < 10 ? 1 : value < 100 ? 2 : 3;
  return value < 10_000 ? 4 : value < 100_000 ? 5 : 6;
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
