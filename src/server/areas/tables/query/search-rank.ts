import type { RankRequest, SentStatement } from "../../../db/index.ts";
import type { ParsedFilter } from "../filters/filter.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import type { Sort } from "../filters/sort.ts";
import { RANKED_RECORDS_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { type Fts, likeSql, matchesSql, pageOf, pageSql, type SearchPlan, textsOf, visibleOf } from "./search-plan.ts";

export interface RankQuery {
  plan: SearchPlan;
  fts: Fts;
  /** Filter of the read rule. */
  ruleFilter: ParsedFilter;
  /** Statement for all matches. */
  found: SqlCondition;
  /** Order by which the newest matches are chosen. */
  newest: Sort;
  limit: number;
  /** Less than RANKED_RECORDS_MAX. */
  offset: number;
}

/**
 * Plans the order by relevance of the newest matches that a rule's filter shows. Nothing in it depends on other records: the texts
 * are those of the matches, and words are counted in records that the filter shows. [TB801]
 */
export function rankRequest(model: TableModel, query: RankQuery): RankRequest {
  const { plan, fts, found, newest, limit, offset } = query;
  const page = { sort: newest, limit: RANKED_RECORDS_MAX, offset: 0 };
  const columns = ["t.rowid", ...textsOf(model, fts)];
  const behind = offset + limit - RANKED_RECORDS_MAX;
  return {
    candidates: pageOf(model, found, page, { columns, order: { sql: 't."id"', params: [] } }),
    counts: plan.words.length === 1 ? [] : countStatements(model, query),
    words: plan.ranked,
    recordsMax: RANKED_RECORDS_MAX,
    offset,
    limit,
    others: behind <= 0 ? null : pageSql(model, found, { sort: newest, limit: behind, offset: RANKED_RECORDS_MAX }),
  };
}

/** Returns the statement for ranked records, which binds their total and their rowids. */
export function rankedPageSql(model: TableModel): string {
  const columns = model.columns.map((column) => `t.${column.sql}`);
  const from = `json_each(?) AS _platform_place CROSS JOIN ${model.sql} AS t ON t.rowid = _platform_place.value`;
  return `SELECT ${["?", ...columns].join(", ")} FROM ${from} ORDER BY _platform_place.key`;
}

/** Name of a word in `json_each`. */
const WORD = "_platform_word";

/**
 * Returns statements that count for each word the records that have it, of those that the rule's filter shows: one for all words of
 * the index, and one for all others, so that the values of the rule are bound once or twice.
 */
function countStatements(model: TableModel, { plan, fts, ruleFilter }: RankQuery): SentStatement[] {
  const entries = [...plan.words.entries()];
  const indexed = entries.flatMap(([place, word]) => (word.by === "index" ? [[place, word.query]] : []));
  const patterned = entries.flatMap(([place, word]) => (word.by === "patterns" ? [[place, word.patterns]] : []));
  const visible = indexed.length === 0 ? null : visibleOf(model, ruleFilter);
  const rest = { ruleFilter, fts: fts.sql, isPrepared: visible !== null };
  const match = { sql: `f.${fts.sql} MATCH ${WORD}.value`, params: [] };
  const likes = textsOf(model, fts).map((column) => likeSql(column, "_platform_pattern.value"));
  const like = `EXISTS (SELECT 1 FROM json_each(${WORD}.value) AS _platform_pattern WHERE ${likes.join(" OR ")})`;
  const byIndex = matchesSql(model, { ...rest, match, own: null });
  const byPattern = matchesSql(model, { ...rest, match: null, own: { sql: like, params: [] } });
  const statements = [];
  if (indexed.length > 0) statements.push(countStatement(byIndex, indexed, visible));
  if (patterned.length > 0) statements.push(countStatement(byPattern, patterned, null));
  return statements;
}

/** `words`: their places, and their values for `json_each`. */
function countStatement(
  matches: SqlCondition,
  words: readonly (readonly unknown[])[],
  visible: SqlCondition | null,
): SentStatement {
  const count = `SELECT count(*) FROM (SELECT 1 FROM ${matches.sql} LIMIT ${RANKED_RECORDS_MAX})`;
  return {
    sql: `${visible === null ? "" : `WITH ${visible.sql} `}SELECT ${WORD}.key, (${count}) FROM json_each(?) AS ${WORD}`,
    params: [...(visible?.params ?? []), ...matches.params, JSON.stringify(Object.fromEntries(words))],
  };
}
