import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import { canonical } from "../load/comparison.ts";
import type { Remarks } from "../remarks.ts";
import type { MovedColumn, MovedTable, MovePlan } from "./plan.ts";
import type { PgRow, PgSource } from "./source.ts";
import { valueIn } from "./values.ts";

const KEY_SEPARATOR = "~";

/** Converts the rows of a table. References to accounts that are not moved become null, and are counted. */
export class Conversion {
  readonly #source: PgSource;
  readonly #plan: MovePlan;
  readonly #accounts: ReadonlySet<string>;
  readonly #dangling = new Map<string, number>();

  constructor(source: PgSource, plan: MovePlan, accounts: ReadonlySet<string>) {
    this.#source = source;
    this.#plan = plan;
    this.#accounts = accounts;
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
    for (const column of columns) if (column.name !== "id") record[column.name] = this.#value(table, column, row);
    return record;
  }

  #value(table: string, { column, kind, target }: MovedColumn, row: PgRow): JsonValue {
    const text = row[column.name] ?? null;
    if (target === this.#plan.users && text !== null && !this.#accounts.has(text)) {
      const place = `${table}.${column.name}`;
      this.#dangling.set(place, (this.#dangling.get(place) ?? 0) + 1);
      return null;
    }
    return valueIn(kind, column.type, text) ?? null;
  }

  tellDangling(remarks: Remarks): void {
    for (const [place, count] of this.#dangling) {
      remarks.lost(place, `${count} references to accounts that are not moved: they are null`);
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
