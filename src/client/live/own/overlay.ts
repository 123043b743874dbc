import type { JsonObject } from "../../../kernel/json/json.ts";
import type { WriteOperation } from "../../tables/local-writes.ts";
import { SEEN_STATES_MAX } from "../limits.ts";
import { isSame } from "../records.ts";
import { applyOperation, isEchoOf } from "./operations.ts";

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
