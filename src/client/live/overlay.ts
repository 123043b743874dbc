import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import type { WriteOperation } from "../tables/writes.ts";
import { isSame } from "./plan.ts";

/** The record after an operation of this client, as far as the client can tell. null: none. */
function applyOperation(operation: WriteOperation, record: JsonObject | null, now: string): JsonObject | null {
  switch (operation.type) {
    case "delete":
      return null;
    case "update":
      return record === null ? null : changed(record, operation.changes, now);
    case "insert":
      // The server's own record has what the client cannot know.
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

/** `increment` and `deleteField` are objects with `$op`. */
function valueAfter(before: JsonValue, value: JsonValue): JsonValue {
  if (!isOperator(value)) return value;
  if (value["$op"] === "deleteField") return null;
  return (typeof before === "number" ? before : 0) + Number(value["value"]);
}

/** Whether a state that the server sends looks like the result of the operation: what it sets is as expected. */
function isEchoOf(operation: WriteOperation, before: JsonObject | null, state: JsonObject | null): boolean {
  if (operation.type === "delete" || state === null) return operation.type === "delete" && state === null;
  if (operation.type === "insert") return before === null;
  const set = operation.type === "update" ? operation.changes : operation.record;
  return Object.keys(set).every((name) => {
    const value = set[name] ?? null;
    // What an increment makes of a value that is not known cannot be told.
    return (before === null && isOperator(value)) || isSame(valueAfter(before?.[name] ?? null, value), state[name]);
  });
}

/** States of a record that a write under way remembers, to find its own among them. */
const SEEN_STATES_MAX = 16;

/** One operation of this client over the records of one query, until the query has its result from the server. */
export class Overlay {
  readonly operation: WriteOperation;
  readonly #now: string;
  /** Of the record. An upsert may find another one when it is done. */
  id: string;
  /** The server's record, null for a deleted one; undefined: it is under way. */
  result: JsonObject | null | undefined;
  /** A change that looks like its own has come before its answer. */
  #isEchoed = false;
  /** The states of the record that were sent since it began. */
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

  /** The server has sent a state of its record, which was `before` here. */
  note(state: JsonObject | null, before: JsonObject | null): void {
    if (this.result !== undefined) return;
    this.#isEchoed ||= isEchoOf(this.operation, before, state);
    this.#seen.push(state);
    if (this.#seen.length > SEEN_STATES_MAX) this.#seen.shift();
  }

  /** Whether the result was among the states that were sent while the write was under way. */
  hasSeen(state: JsonObject | null): boolean {
    return this.#seen.some((one) => isSame(one, state));
  }
}
