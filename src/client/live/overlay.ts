import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import type { WriteOperation } from "../tables/writes.ts";
import { isSame } from "./plan.ts";

/** Returns the record after an operation of this client, as far as the client can predict it; null: none. */
function applyOperation(operation: WriteOperation, record: JsonObject | null, now: string): JsonObject | null {
  switch (operation.type) {
    case "delete":
      return null;
    case "update":
      return record === null ? null : changed(record, operation.changes, now);
    case "insert":
      // The server's record has fields that the client cannot know.
      return record ?? { createdAt: now, updatedAt: now, ...operation.record };
    case "upsert":
      return record === null
        ? { createdAt: now, updatedAt: now, ...operation.record }
        : changed(record, { ...operation.record, id: record["id"] ?? null }, now);
  }
}

function changed(record: JsonObject, changes: JsonObject, now: string): JsonObject {
  const next = { ...record };
  if (Object.hasOwn(record, "updatedAt")) next["updatedAt"] = now;
  for (const [name, value] of Object.entries(changes)) next[name] = valueAfter(record[name] ?? null, value);
  return next;
}

const isOperator = (value: JsonValue): value is JsonObject => isJsonObject(value) && typeof value["$op"] === "string";

/** Applies a value to a field. `increment`, `deleteField`, and the changes of references by one id are objects with `$op`. */
function valueAfter(before: JsonValue, value: JsonValue): JsonValue {
  if (!isOperator(value)) return value;
  const { $op: operator, value: operand = null } = value;
  if (Array.isArray(before)) {
    if (operator === "add") return [...new Set([...before, operand])];
    return before.filter((one) => operator === "remove" && one !== operand);
  }
  if (operator === "deleteField") return null;
  return (typeof before === "number" ? before : 0) + Number(operand);
}

/**
 * Returns whether a state from the server looks like the result of the operation: the fields it sets have the expected values.
 */
function isEchoOf(operation: WriteOperation, before: JsonObject | null, state: JsonObject | null): boolean {
  if (operation.type === "delete" || state === null) return operation.type === "delete" && state === null;
  if (operation.type === "insert") return before === null;
  const set = operation.type === "update" ? operation.changes : operation.record;
  return Object.keys(set).every((name) => {
    const value = set[name] ?? null;
    // The result of an increment of an unknown value is unpredictable.
    return (before === null && isOperator(value)) || isSame(valueAfter(before?.[name] ?? null, value), state[name]);
  });
}

/** Bound of the states that an overlay remembers, to recognise its own among them. */
const SEEN_STATES_MAX = 16;

/** One operation of this client on a record of one query, until the query has its result from the server. */
export class Overlay {
  readonly operation: WriteOperation;
  readonly #now: string;
  /** Id of the record. An upsert may turn out to affect another one. */
  id: string;
  /** Record from the server; null for a deleted one, undefined while in flight. */
  result: JsonObject | null | undefined;
  /** Whether a change that looks like its own has arrived before its response. */
  #isEchoed = false;
  /** States of the record that were sent since the write began. */
  #seen: (JsonObject | null)[] = [];

  constructor(operation: WriteOperation, about: { id: string; now: string }) {
    this.operation = operation;
    this.id = about.id;
    this.#now = about.now;
  }

  apply(record: JsonObject | null): JsonObject | null {
    if (this.result !== undefined) return this.result;
    return this.#isEchoed ? record : applyOperation(this.operation, record, this.#now);
  }

  /** Notes a state of the record from the server, and the one `before` it. */
  note(state: JsonObject | null, before: JsonObject | null): void {
    if (this.result !== undefined) return;
    this.#isEchoed ||= isEchoOf(this.operation, before, state);
    this.#seen.push(state);
    if (this.#seen.length > SEEN_STATES_MAX) this.#seen.shift();
  }

  /** Returns whether the result was among the states sent while the write was in flight. */
  hasSeen(state: JsonObject | null): boolean {
    return this.#seen.some((one) => isSame(one, state));
  }
}
