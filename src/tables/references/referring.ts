import type { TableRecord } from "../../config/types.ts";
import type { SqlValue, Transaction } from "../../db/index.ts";
import type { Codec } from "../model/codec.ts";
import type { Column, TableModel } from "../model/model.ts";
import type { SqlCondition } from "../query/filter-sql.ts";
import { type CascadeWork, costSql } from "./cascade-cost.ts";

type Queries = Pick<Transaction, "query">;

/** A value that others may refer to, in the column by which they do. */
export interface ReferredValue {
  column: Column;
  value: SqlValue;
}

/** The SQL about records of one table that refer to others, and about what it costs to delete them. */
export interface ReferringStore {
  /** Whether a record has this value in this column, and meets the condition; it is not read. */
  exists(queries: Queries, referred: ReferredValue, condition?: SqlCondition | null): boolean;
  /** At most `limit` records, with what `work` on each costs. */
  records(
    queries: Queries,
    work: CascadeWork,
    referred: ReferredValue,
    limit: number,
  ): { record: TableRecord; cost: number }[];
  /** What `work` on the first `limit` of them costs together; they are not read. */
  cost(queries: Queries, work: CascadeWork, referred: ReferredValue, limit: number): number;
  /** Ids by id, at most `limit` of them after `after`. */
  ids(queries: Queries, referred: ReferredValue, page: { after: string; limit: number }): string[];
  /** What it costs to delete this record; 0 where it is not there. */
  costOf(queries: Queries, id: string): number;
}

export function createReferringStore(model: TableModel, codec: Codec): ReferringStore {
  const { sql: table, selectList } = model;
  const costs = { delete: costSql(model, "delete"), "let go": costSql(model, "let go") };
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
