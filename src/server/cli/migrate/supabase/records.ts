import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import { canonical } from "../load/comparison.ts";
import type { Remarks } from "../remarks.ts";
import type { MovedColumn, MovedTable } from "./plan.ts";
import type { PgRow, PgSource } from "./source.ts";
import { valueIn } from "./values.ts";

const KEY_SEPARATOR = "~";

/** Tells whether a record, or an account, of a table is here. */
export type Known = (table: string, id: string) => boolean;

/** Converts the rows of a table. References to accounts and records that are not here become null, and are counted. */
export class Conversion {
  readonly #source: PgSource;
  readonly #isKnown: Known;
  /** Ids of records by the place of such a reference, so that reading one again counts nothing twice. */
  readonly #dangling = new Map<string, Set<string>>();

  constructor(source: PgSource, isKnown: Known) {
    this.#source = source;
    this.#isKnown = isKnown;
  }

  /** Yields the records of a table, each with what is hidden of it. */
  *records({ table, columns, hidden, key }: MovedTable): Generator<{ record: JsonObject; hidden: JsonObject }> {
    let number = 0;
    for (const row of this.#source.rows(table)) {
      number += 1;
      const id = key.length === 0 ? String(number) : key.map((name) => row[name] ?? "").join(KEY_SEPARATOR);
      yield { record: this.#record(table.name, id, columns, row), hidden: this.#record(table.name, id, hidden, row) };
    }
  }

  #record(table: string, id: string, columns: readonly MovedColumn[], row: PgRow): JsonObject {
    const record: JsonObject = { id };
    for (const column of columns) if (column.name !== "id") record[column.name] = this.#value(table, id, column, row);
    return record;
  }

  #value(table: string, id: string, { column, kind, target }: MovedColumn, row: PgRow): JsonValue {
    const text = row[column.name] ?? null;
    if (target !== null && text !== null && !this.#isKnown(target, text)) {
      const place = `${table}.${column.name}`;
      this.#dangling.set(place, (this.#dangling.get(place) ?? new Set()).add(id));
      return null;
    }
    return valueIn(kind, column.type, text) ?? null;
  }

  tellDangling(remarks: Remarks): void {
    for (const [place, { size }] of this.#dangling) {
      remarks.lost(place, `${size} references to accounts or records that are not here: they are null`);
    }
    this.#dangling.clear();
  }
}

/** A hash over records in any order. */
export function createSetHash() {
  const hashes: string[] = [];
  return {
    add: (record: JsonObject): void =>
      void hashes.push(createHash("sha256").update(canonical(record)).digest("base64")),
    result: () => ({ count: hashes.length, hash: createHash("sha256").update(hashes.sort().join()).digest("hex") }),
  };
}
