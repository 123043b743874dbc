import type { ParsedFilter } from "../filters/filter.ts";
import { behindRule, filterToSql, join, type SqlCondition } from "../filters/filter-sql.ts";
import { orderBy, type Sort } from "../filters/sort.ts";
import type { TableModel } from "../model/model.ts";
import type { SearchPlan } from "./search-plan.ts";

/** Names in statements next to declared names, which never begin with `_platform`. */
const FOUND = "_platform_found";
const PAGE = "_platform_page";
const ROW = "_platform_row";
const RANK = "_platform_rank";

export interface FoundQuery {
  plan: SearchPlan;
  filter: ParsedFilter;
  /** The filter of the read rule. */
  ruleFilter: ParsedFilter;
  /** Whether the best match comes first. */
  isRanked: boolean;
}

/** The rowid of every match, and its rank where matches are ranked. */
export function foundSql(model: TableModel, { plan, filter, ruleFilter, isRanked }: FoundQuery): SqlCondition {
  const asked = [plan.like, filterToSql(filter, "t.")].filter((part) => part !== null);
  const onTable = behindRule(ruleFilter, asked.length === 0 ? null : join(asked, "AND"), "t.");
  const where = join(
    [plan.match, onTable].filter((part) => part !== null),
    "AND",
  );
  const rank = isRanked && plan.match !== null ? "f.rank" : "0";
  const from =
    plan.match === null
      ? `${model.sql} AS t`
      : `${plan.fts} AS f${onTable !== null ? ` JOIN ${model.sql} AS t ON t.rowid = f.rowid` : ""}`;
  return {
    sql: `SELECT ${plan.match === null ? "t" : "f"}.rowid AS ${ROW}, ${rank} AS ${RANK} FROM ${from} WHERE ${where.sql}`,
    params: where.params,
  };
}

export interface PageQuery {
  /** null: best match first. */
  sort: Sort | null;
  limit: number;
  offset: number;
}

/**
 * One page, with the number of all matches in its first column. The statement scans the matches once and reads only the
 * records of the page. At its end, records of equal rank are ordered by id.
 */
export function pageSql(model: TableModel, found: SqlCondition, { sort, limit, offset }: PageQuery): SqlCondition {
  const orderIn = (cte: string) =>
    sort === null ? { sql: `${cte}.${RANK}, t."id"`, params: [] } : orderBy(sort, { reverse: false, alias: "t." });
  const [inFound, inPage] = [orderIn(FOUND), orderIn(PAGE)];
  const edge = `SELECT ${RANK} FROM ${FOUND} ORDER BY ${RANK} LIMIT 1 OFFSET ${offset + limit - 1}`;
  const within = sort === null ? ` WHERE ${FOUND}.${RANK} <= ifnull((${edge}), 9e999)` : "";
  const joined = (cte: string): string => `${cte} CROSS JOIN ${model.sql} AS t ON t.rowid = ${cte}.${ROW}`;
  const columns = model.columns.map((column) => `t.${column.sql}`);
  return {
    sql:
      `WITH ${FOUND} AS MATERIALIZED (${found.sql}), ` +
      `${PAGE} AS MATERIALIZED (SELECT ${FOUND}.* FROM ${joined(FOUND)}${within} ORDER BY ${inFound.sql} LIMIT ${limit} OFFSET ${offset}) ` +
      `SELECT ${[`(SELECT count(*) FROM ${FOUND})`, ...columns].join(", ")} FROM ${joined(PAGE)} ORDER BY ${inPage.sql}`,
    params: [...found.params, ...inFound.params, ...inPage.params],
  };
}
