import { badField } from "../../../../kernel/errors.ts";
import { type JsonObject, ownValue } from "../../../../kernel/json/json.ts";
import { PATTERN_TEXT_LENGTH_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { atOperation } from "../model/problems.ts";
import type { StoredBytes } from "../model/record-size.ts";
import { Suspended } from "../rules/decisions.ts";
import type { WriteContext } from "./write-context.ts";

/** Place of an operation in the request: its own name, and that of its fields. */
export interface Place {
  operation: string;
  fields: string;
}

/**
 * Operations of one transaction. When one has to await a rule or hook, the later ones still run, so that all promises are awaited
 * together and the transaction restarts once.
 */
export class Operations {
  readonly #awaited: Promise<unknown>[] = [];
  readonly #stored: StoredBytes;

  constructor({ stored }: WriteContext) {
    this.#stored = stored;
  }

  /**
   * Runs an operation; null when it has to await a promise. Errors name the operation, unless an awaited one may have caused
   * them.
   */
  run<T>(place: string | Place, work: () => T): T | null {
    try {
      return work();
    } catch (cause) {
      if (!(cause instanceof Suspended)) {
        this.finish();
        throw atOperation(cause, place);
      }
      this.#awaited.push(cause.settled);
      // Awaited records stay in memory.
      if (this.#stored.isAwaitedEnough) this.finish();
      return null;
    }
  }

  /** Throws `Suspended` when an operation has to await a promise. */
  finish(): void {
    if (this.#awaited.length > 0) throw new Suspended(Promise.all(this.#awaited));
  }
}

/** A record of a request with its place there. */
export interface PlacedRecord {
  model: TableModel;
  place: string;
  record: JsonObject;
}

/**
 * Checks the total length of texts with a pattern. A pattern may take quadratic time, which is acceptable for one text of the
 * maximum length, but not for 500 of them. Errors: 400 naming the text that exceeds the bound. [TB149]
 */
export function checkPatternCost(records: Iterable<PlacedRecord>): void {
  const patterned = new Map<TableModel, readonly string[]>();
  let squares = 0;
  for (const { model, place, record } of records) {
    let names = patterned.get(model);
    if (names === undefined) {
      names = model.columns.flatMap(({ name, field }) => (field?.pattern === undefined ? [] : [name]));
      patterned.set(model, names);
    }
    for (const name of names) {
      const text = ownValue(record, name);
      if (typeof text !== "string") continue;
      squares += text.length ** 2;
      if (squares <= PATTERN_TEXT_LENGTH_MAX ** 2) continue;
      const message = `${place}.${name}: the texts of this request that have to match a pattern are too long together`;
      throw badField(`${place}.${name}`, "too_long", message);
    }
  }
}
