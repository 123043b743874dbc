import type { TableRecord } from "../../../config/types.ts";
import type { SqlValue, Transaction } from "../../../db/index.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import type { Codec } from "../model/codec.ts";
import type { Column, TableModel } from "../model/model.ts";
import { perTable } from "../records/namespaces.ts";
import { type CascadeWork, costSql } from "./cascade-cost.ts";

type Queries = Pick<Transaction, "query">;

/** A referenced value and the referring column. */
export interface ReferredValue {
  column: Column;
  value: SqlValue;
}

/** SQL for referring records of one table, and for the cost of deleting them. */
export interface ReferringStore {
  /** Whether a record with this value in this column meets the condition. The record itself is not read. */
  exists(queries: Queries, referred: ReferredValue, condition?: SqlCondition | null): boolean;
  /** At most `limit` records, each with the cost of `work` on it. */
  records(
    queries: Queries,
    work: CascadeWork,
    referred: ReferredValue,
    limit: number,
  ): { record: TableRecord; cost: number }[];
  /** The total cost of `work` on the first `limit` records, which are not read. */
  cost(queries: Queries, work: CascadeWork, referred: ReferredValue, limit: number): number;
  /** At most `limit` ids after `after`, in order. */
  ids(queries: Queries, referred: ReferredValue, page: { after: string; limit: number }): string[];
  /** The cost of deleting this record; 0 where it does not exist. */
  costOf(queries: Queries, id: string): number;
}

export const referringOf = perTable(({ model, store }) => createReferringStore(model, store.codec));

function createReferringStore(model: TableModel, codec: Codec): ReferringStore {
  const { sql: table, selectList } = model;
  const costs = { delete: costSql(model, "delete"), clear: costSql(model, "clear") };
  return {
    exists(queries, { column, value }, condition = null) {
      const { sql, params } = condition === null ? { sql: "", params: [] } : condition;
      const where = condition === null ? `${column.sql} = ?` : `${column.sql} = ? AND (${sql})`;
      return queries.query(`SELECT 1 FROM ${table} WHERE ${where} LIMIT 1`).get(value, ...params) !== null;
    },
    records: (queries, work, { column, value }, limit) =>
      queries
        .query(`SELECT ${selectList}, ${costs[work]} FROM ${table} WHERE ${column.sql} = ? LIMIT ?`)
        .values(value, limit)
        .map((values) => ({ record: codec.fromValues(values), cost: Number(values.at(-1)) })),
    cost: (queries, work, { column, value }, limit) =>
      firstNumber(
        queries
          .query(
            `SELECT sum("cost") FROM (SELECT ${costs[work]} AS "cost" FROM ${table} WHERE ${column.sql} = ? LIMIT ?)`,
          )
          .values(value, limit),
      ),
    ids: (queries, { column, value }, { after, limit }) =>
      queries
        .query(`SELECT "id" FROM ${table} WHERE ${column.sql} = ? AND "id" > ? ORDER BY "id" LIMIT ?`)
        .values(value, after, limit)
        .map(([id]) => String(id)),
    costOf: (queries, id) =>
      firstNumber(queries.query(`SELECT ${costs.delete} FROM ${table} WHERE "id" = ?`).values(id)),
  };
}

const firstNumber = (found: unknown[][]): number => Number(found[0]?.[0] ?? 0);
