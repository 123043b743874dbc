import { EMBEDDINGS_TABLE } from "../../../db/index.ts";
import type { ParsedFilter } from "../filters/filter.ts";
import { behindRule, filterToSql, type SqlCondition } from "../filters/filter-sql.ts";
import type { TableModel } from "../model/model.ts";
import type { EmbeddedModel } from "./machine.ts";

/** Conditions on the records `t`. */
export interface Narrowed {
  filter: ParsedFilter;
  /** Filter of the read rule. */
  ruleFilter: ParsedFilter;
}

const whereOf = ({ filter, ruleFilter }: Narrowed): SqlCondition =>
  behindRule(ruleFilter, filterToSql(filter, "t."), "t.") ?? { sql: "1", params: [] };

/**
 * Returns the statement for row ids and distances of the nearest records, nearest first. The rule decides first, then the caller's
 * conditions: no distance of another record is computed. `except`: a record that is left out.
 */
export function nearestSql(
  model: EmbeddedModel,
  narrowed: Narrowed,
  { vector, limit, except }: { vector: Uint8Array; limit: number; except: string | null },
): SqlCondition {
  const where = whereOf(narrowed);
  const others = except === null ? "" : ` AND t."id" <> ?`;
  return {
    // CROSS JOIN: the records come first, and so their conditions.
    sql: `SELECT t.rowid, vec_distance_l2(v."vector", ?) AS "_platform_distance"
      FROM ${model.sql} AS t CROSS JOIN ${model.embed.vectors} AS v ON v."row" = t.rowid WHERE (${where.sql})${others}
      ORDER BY "_platform_distance", t."id" LIMIT ${limit}`,
    params: [vector, ...where.params, ...(except === null ? [] : [except])],
  };
}

/** Returns the statement for records by their row ids, which come first, in their order. Hidden ones are left out. */
export function recordsSql(model: TableModel, narrowed: Narrowed, rows: readonly number[]): SqlCondition {
  const columns = model.columns.map((column) => `t.${column.sql}`);
  const where = whereOf(narrowed);
  return {
    sql: `SELECT ${["t.rowid", ...columns].join(", ")} FROM json_each(?) AS _platform_place
      CROSS JOIN ${model.sql} AS t ON t.rowid = _platform_place.value WHERE ${where.sql} ORDER BY _platform_place.key`,
    params: [JSON.stringify(rows), ...where.params],
  };
}

/** Selects the length of a table's vectors. */
export const DIMENSIONS = `SELECT "dimensions" FROM "${EMBEDDINGS_TABLE}" WHERE "table" = ?`;
