import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import type { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { TableRecord } from "../../../config/types.ts";
import { VALUES_IN_TRANSACTION_MAX } from "../limits.ts";
import type { Table } from "../records/namespaces.ts";
import { preparedRecord } from "./record-writes.ts";
import { NOT_PREPARED, type Prepared } from "./write-context.ts";

export interface LargeBody {
  table: Table;
  body: JsonObject;
  /** Index of the id for a body that may become a record; null for changes of a stored one. */
  index: number | null;
}

/** Values that a request sets in its new records. */
export interface Auto {
  principal: Principal;
  now: string;
  newId(index: number): string;
}

/**
 * Checks and serialises the bodies of a large request before its transaction, over several turns of the event loop; nothing in it
 * depends on stored data. For a small request this happens in the transaction. [TB128]
 */
export async function prepareLarge(bodies: readonly LargeBody[], auto: Auto, turns: Scheduler): Promise<Prepared> {
  const left = { count: VALUES_IN_TRANSACTION_MAX };
  for (const { body } of bodies) {
    for (const name in body) {
      countDown(body[name] ?? null, left);
      if (left.count < 0) return turns.run(inSteps(bodies, auto));
    }
  }
  return NOT_PREPARED;
}

function countDown(value: JsonValue, left: { count: number }): void {
  if (--left.count < 0 || typeof value !== "object" || value === null) return;
  const members = Array.isArray(value) ? value : Object.values(value);
  for (const member of members) {
    countDown(member, left);
    if (left.count < 0) return;
  }
}

function* inSteps(bodies: readonly LargeBody[], auto: Auto): Generator<void, Prepared> {
  const texts = new Map<object, string>();
  const records = new Map<JsonObject, () => TableRecord>();
  for (const { table, body, index } of bodies) {
    const { documentOf } = table.store.codec;
    const record = index === null ? null : attempted(() => newRecord(table, body, index, auto));
    if (record !== null) records.set(body, record.get);
    yield;
    if (record?.value !== undefined && documentOf !== null) {
      texts.set(record.value, documentOf(record.value));
      yield;
      continue;
    }
    for (const name in body) {
      const value = body[name];
      if (typeof value !== "object" || value === null) continue;
      texts.set(value, JSON.stringify(value));
      yield;
    }
  }
  return { ...NOT_PREPARED, texts, records };
}

const newRecord = (table: Table, body: JsonObject, index: number, { principal, now, newId }: Auto): TableRecord =>
  preparedRecord(principal, table, body, { id: newId(index), now });

/**
 * Attempts `work`. `value` is its result, or undefined when it throws; `get` returns the result or throws the same error again.
 */
function attempted<T>(work: () => T): { value?: T; get: () => T } {
  try {
    const value = work();
    return { value, get: () => value };
  } catch (cause) {
    const get = (): never => {
      throw cause;
    };
    return { get };
  }
}
