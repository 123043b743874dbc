import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { type StateKind, valueBytes } from "../state/state.ts";

/** Bytes that a key takes beside its characters: quotes, colon and comma. */
const KEY_BYTES = 4;

/** What is left of the bytes of an answer, and whether anything had to be left out. */
export interface BytesLeft {
  bytes: number;
  isCut: boolean;
}

/**
 * The part of an adopted state that fits: members in order, and of one that is too large its own members. Arrays end where they are
 * cut. It takes as long as what it gives is large, however large the state.
 */
export function fitting(state: JsonObject, kind: StateKind, left: BytesLeft): JsonObject {
  const part = partOf(state, kind, left);
  return isJsonObject(part) ? part : {};
}

/** undefined: none of it fits. */
function partOf(value: JsonValue, kind: StateKind, left: BytesLeft): JsonValue | undefined {
  const bytes = valueBytes(value, kind);
  if (bytes <= left.bytes) {
    left.bytes -= bytes;
    return value;
  }
  left.isCut = true;
  if (typeof value !== "object" || value === null) return undefined;
  return Array.isArray(value) ? itemsOf(value, kind.inArrays ?? kind, left) : membersOf(value, kind, left);
}

function membersOf(object: JsonObject, kind: StateKind, left: BytesLeft): JsonObject {
  const members: Record<string, JsonValue> = {};
  for (const key of Object.keys(object)) {
    left.bytes -= key.length + KEY_BYTES;
    if (left.bytes <= 0) break;
    const part = partOf(object[key] ?? null, kind, left);
    if (part !== undefined) members[key] = part;
  }
  return members;
}

function itemsOf(items: readonly JsonValue[], kind: StateKind, left: BytesLeft): JsonValue[] {
  const parts: JsonValue[] = [];
  for (const item of items) {
    const isWhole = valueBytes(item, kind) <= left.bytes;
    const part = partOf(item, kind, left);
    if (part !== undefined) parts.push(part);
    if (!isWhole || left.bytes <= 0) break;
  }
  return parts;
}
