import { AppError } from "../../../../kernel/errors.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { SqlValue, Transaction } from "../../../db/index.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import { CASCADE_COST_MAX } from "../limits.ts";
import type { Codec } from "../model/codec.ts";
import type { Column, TableModel } from "../model/model.ts";
import { perTable } from "../records/namespaces.ts";

type Queries = Pick<Transaction, "query">;

/** A referenced value and the referring column. */
export interface ReferredValue {
  column: Column;
  value: SqlValue;
}

export const referringOf = perTable(({ model, store }) => createReferringStore(model, store.codec));

/** SQL for the referring records of one table, and for the cost of deleting them. */
function createReferringStore(model: TableModel, codec: Codec) {
  const { sql: table, selectList } = model;
  const costs = { delete: costSql(model, "delete"), clear: costSql(model, "clear") };
  return {
    /** Whether a record with this value in this column, of one value, meets the condition. The record itself is not read. */
    exists(queries: Queries, { column, value }: ReferredValue, condition: SqlCondition | null = null): boolean {
      const { sql, params } = condition === null ? { sql: "", params: [] } : condition;
      const where = condition === null ? `${column.sql} = ?` : `${column.sql} = ? AND (${sql})`;
      return queries.query(`SELECT 1 FROM ${table} WHERE ${where} LIMIT 1`).get(value, ...params) !== null;
    },
    /** Returns those of the ids of which no record exists that meets the condition, by one statement. */
    missing(queries: Queries, ids: readonly string[], condition: SqlCondition | null = null): string[] {
      const found = `SELECT 1 FROM ${table} WHERE ${table}."id" = e.value${condition === null ? "" : ` AND (${condition.sql})`}`;
      return queries
        .query(`SELECT e.value FROM json_each(?) AS e WHERE NOT EXISTS (${found})`)
        .values(JSON.stringify(ids), ...(condition?.params ?? []))
        .map(([id]) => String(id));
    },
    /** Returns at most `limit` records, each with the cost of `work` on it. */
    records: (
      queries: Queries,
      work: CascadeWork,
      { column, value }: ReferredValue,
      limit: number,
    ): { record: TableRecord; cost: number }[] =>
      queries
        .query(`SELECT ${selectList}, ${costs[work]} FROM ${table} WHERE ${firstReferringTo(column)}`)
        .values(value, limit)
        .map((values) => ({ record: codec.fromValues(values), cost: Number(values.at(-1)) })),
    /** Returns the total cost of `work` on the first `limit` records, without reading them. */
    cost: (queries: Queries, work: CascadeWork, { column, value }: ReferredValue, limit: number): number =>
      firstNumber(
        queries
          .query(
            `SELECT sum("cost") FROM (SELECT ${costs[work]} AS "cost" FROM ${table} WHERE ${firstReferringTo(column)})`,
          )
          .values(value, limit),
      ),
    /** Returns at most `limit` ids after `after`, in order. */
    ids: (
      queries: Queries,
      { column: { sql, links }, value }: ReferredValue,
      { after, limit }: { after: string; limit: number },
    ): string[] =>
      queries
        .query(
          `SELECT "id" FROM ${links ?? table} WHERE ${links === null ? sql : '"target"'} = ? AND "id" > ? ORDER BY "id" LIMIT ?`,
        )
        .values(value, after, limit)
        .map(([id]) => String(id)),
    /** Returns the cost of `work` on this record; 0 when it does not exist. */
    costOf: (queries: Queries, work: CascadeWork, id: string): number =>
      firstNumber(queries.query(`SELECT ${costs[work]} FROM ${table} WHERE "id" = ?`).values(id)),
  };
}

/** Returns the condition for the first records whose column has a value, or has it among several: a value and a limit. */
const firstReferringTo = ({ sql, links }: Column): string =>
  links === null ? `${sql} = ? LIMIT ?` : `"id" IN (SELECT "id" FROM ${links} WHERE "target" = ? LIMIT ?)`;

const firstNumber = (found: unknown[][]): number => Number(found[0]?.[0] ?? 0);

const BYTES_PER_UNIT = 2048;
/**
 * Bytes of searched text per unit of cost. Deleting from a full-text index costs time per word; a trigram index has one per
 * character.
 */
const SEARCHED_BYTES_PER_UNIT = { unicode61: 32, porter: 32, trigram: 8 };

/** Ids of several references per unit of cost: of each the link is removed. */
const LINKED_IDS_PER_UNIT = 3;

/** Effect on a record that refers to a deleted one. */
export type CascadeWork = "delete" | "clear";

/** Error 409 for too much to delete in one request. */
export class CascadeTooLarge extends AppError {
  constructor(message: string) {
    super(409, message);
  }
}

export const tooMuch = (): CascadeTooLarge =>
  new CascadeTooLarge(
    `This would change more records that refer to it than one request may (${CASCADE_COST_MAX}, and fewer where they are ` +
      "long, full-text searched or referred to in turn); delete those first",
  );

/** Returns the cost of this work on a row of the table as an SQL expression. */
export function costSql(model: TableModel, work: CascadeWork): string {
  const bytes = (names: readonly string[]): string =>
    names.map((sql) => `coalesce(octet_length(${sql}), 0)`).join(" + ") || "0";
  const long = model.columns
    .filter(({ type }) => ["string", "text", "json", "references"].includes(type))
    .map(({ sql }) => sql);
  const several = model.columns.filter(({ links }) => links !== null).map(({ sql }) => `json_array_length(${sql})`);
  const linked = several.length === 0 ? "" : ` + (${several.join(" + ")}) / ${LINKED_IDS_PER_UNIT}`;
  const read = `(${bytes(long)}) / ${BYTES_PER_UNIT}${linked}`;
  // The row is read and written; its full-text index does not change.
  if (work === "clear") return `(2 + ${read})`;
  const searched = (model.fts?.fields ?? []).flatMap((name) => model.byName.get(name)?.sql ?? []);
  const perUnit = SEARCHED_BYTES_PER_UNIT[model.fts?.tokenize ?? "unicode61"];
  return `(${model.incoming.length > 0 ? 3 : 1} + ${read} + (${bytes(searched)}) / ${perUnit})`;
}
