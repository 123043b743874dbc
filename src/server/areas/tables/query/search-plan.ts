import { badField, badRequest } from "../../../../kernel/errors.ts";
import { ftsTokenizer, type HighlightRequest, type RankedWords } from "../../../db/index.ts";
import { isRelation, NO_FILTER, type ParsedFilter, type Relation } from "../filters/filter.ts";
import { behindRule, filterToSql, join, type SqlCondition } from "../filters/filter-sql.ts";
import { orderBy, type Sort } from "../filters/sort.ts";
import { QUERY_WORDS_MAX, TRIGRAM_LENGTH_MIN, VISIBLE_RECORDS_FEW } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { SearchValues } from "../model/requests.ts";
import { coveringIndex } from "./index-choice.ts";

const MARK_DEFAULTS = { pre: "<mark>", post: "</mark>" };

/** Conditions of a search on the index and on the table. */
export interface SearchPlan {
  /** Quoted name of the index. */
  fts: string;
  /** Condition on the index `f`; null when no word is long enough for it. */
  match: SqlCondition | null;
  /** Condition for a scan of the table `t`; null when there is none. */
  like: SqlCondition | null;
  /** The different words, for the order by relevance. */
  words: readonly SearchWord[];
  /** All words as terms of the index, the last one as the beginning of some; null where only its tokenizer knows them. */
  terms: readonly string[] | null;
  ranked: RankedWords;
  highlight: HighlightRequest;
}

/** A word as a query of the index, or as patterns of which one must match, where it is too short for the index. */
export type SearchWord = { by: "index"; query: string } | { by: "patterns"; patterns: readonly string[] };

type Marks = Pick<HighlightRequest, "columns" | "pre" | "post" | "isEscaped">;

/**
 * Plans a search; null when `q` has no word, so that nothing is found. `columns`: indexes of the searched texts in a row. Errors:
 * 400.
 */
export function planSearch(model: TableModel, query: SearchValues, columns: readonly number[]): SearchPlan | null {
  const { fts } = model;
  if (fts === null) throw badRequest(`${model.name} has no full-text search`);
  const marks = parseMarks(query, columns);
  const words = wordsOf(query.q, fts);
  if (words.length > QUERY_WORDS_MAX) throw badField("q", "too_long", `q must have at most ${QUERY_WORDS_MAX} words`);
  if (words.length === 0) return null;
  return fts.tokenize === "trigram" ? planTrigram(model, fts, words, marks) : planWords(fts, words, marks);
}

function parseMarks(query: SearchValues, columns: readonly number[]): Marks {
  const { highlightPre: pre = MARK_DEFAULTS.pre, highlightPost: post = MARK_DEFAULTS.post } = query;
  const isEscaped = pre === MARK_DEFAULTS.pre && post === MARK_DEFAULTS.post;
  return { columns, pre, post, isEscaped };
}

export type Fts = NonNullable<TableModel["fts"]>;

/**
 * Splits `q` at white space and NUL, at which FTS5 would end the query. A trigram index has all characters, the others only
 * letters, digits and the vowel signs of letters.
 */
function wordsOf(q: string, { tokenize }: Fts): string[] {
  const pieces = q.split(/[\s\0]+/u).filter((piece) => piece !== "");
  return tokenize === "trigram" ? pieces : pieces.filter((piece) => /[\p{L}\p{N}\p{Co}\p{Mc}]/u.test(piece));
}

/** Quotes a word. Inside quotes only the quote itself is syntax. */
const quoted = (word: string): string => `"${word.replaceAll('"', '""')}"`;

/** Whether a word is a term of the index but for its case. Other words may be split, or lose their accents. */
const isTerm = (word: string): boolean => /^[a-z0-9]+$/i.test(word);

function planWords(fts: Fts, words: readonly string[], marks: Marks): SearchPlan {
  // All words must occur; the last one may be a prefix.
  const phrases = words.map((word, place) => (place < words.length - 1 ? quoted(word) : `${quoted(word)}*`));
  const tokenize = ftsTokenizer(fts.tokenize);
  const queries = [...new Set(phrases)];
  return {
    fts: fts.sql,
    match: { sql: `f.${fts.sql} MATCH ?`, params: [phrases.join(" ")] },
    like: null,
    words: queries.map((query) => ({ by: "index", query })),
    terms: fts.tokenize === "unicode61" && words.every(isTerm) ? words.map((word) => word.toLowerCase()) : null,
    ranked: { by: "words", tokenize, queries },
    highlight: { ...marks, by: "words", tokenize, query: phrases.join(" OR ") },
  };
}

function planTrigram(model: TableModel, fts: Fts, words: readonly string[], marks: Marks): SearchPlan {
  const isLong = (word: string) => [...word].length >= TRIGRAM_LENGTH_MIN;
  const long = words.filter(isLong);
  const likes = words.filter((word) => !isLong(word)).map((word) => anyFieldLike(model, fts, word));
  const terms = [...new Set(words)];
  return {
    fts: fts.sql,
    match: long.length === 0 ? null : { sql: `f.${fts.sql} MATCH ?`, params: [long.map(quoted).join(" ")] },
    like: likes.length === 0 ? null : join(likes, "AND"),
    terms: null,
    words: terms.map((term) =>
      isLong(term) ? { by: "index", query: quoted(term) } : { by: "patterns", patterns: patternsOf(term) },
    ),
    ranked: { by: "substrings", terms },
    highlight: { ...marks, by: "substrings", terms: words },
  };
}

function anyFieldLike(model: TableModel, fts: Fts, word: string): SqlCondition {
  const patterns = patternsOf(word);
  return join(
    textsOf(model, fts).flatMap((column) =>
      patterns.map((pattern) => ({ sql: likeSql(column, "?"), params: [pattern] })),
    ),
    "OR",
  );
}

/** Returns the searched columns of the table `t`. */
export const textsOf = (model: TableModel, fts: Fts): string[] =>
  fts.fields
    .map((field) => model.byName.get(field))
    .flatMap((column) => (column === undefined ? [] : `t.${column.sql}`));

export const likeSql = (column: string, pattern: string): string => `${column} LIKE ${pattern} ESCAPE '\\'`;

const patternsOf = (word: string): string[] => casesOf(word).map((text) => `%${text.replace(/[\\%_]/g, "\\$&")}%`);

/** Returns the case variants of a word of one or two characters: LIKE ignores the case of ASCII only. */
function casesOf(word: string): string[] {
  let cases = [""];
  for (const character of word) {
    const isAscii = character.charCodeAt(0) < 0x80;
    const ways = isAscii ? [character] : [...new Set([character, character.toLowerCase(), character.toUpperCase()])];
    cases = cases.flatMap((before) => ways.map((way) => before + way));
  }
  return cases;
}

/** Names in statements next to declared names, which never begin with `_platform`. */
const FOUND = "_platform_found";
const PAGE = "_platform_page";
const ROW = "_platform_row";
const RANK = "_platform_rank";
const VISIBLE = "_platform_visible";

export interface FoundQuery {
  plan: SearchPlan;
  filter: ParsedFilter;
  /** Filter of the read rule. */
  ruleFilter: ParsedFilter;
  /** Whether matches have the rank of the index of all records. */
  isRanked: boolean;
}

/** Returns the statement for the rowid of every match, and its rank when matches are ranked. */
export function foundSql(model: TableModel, { plan, filter, ruleFilter, isRanked }: FoundQuery): SqlCondition {
  const asked = [plan.like, filterToSql(filter, "t.")].filter((part) => part !== null);
  const own = asked.length === 0 ? null : join(asked, "AND");
  const rank = isRanked && plan.match !== null ? "f.rank" : "0";
  const columns = `${plan.match === null ? "t" : "f"}.rowid AS ${ROW}, ${rank} AS ${RANK}`;
  const visible = plan.match === null ? null : visibleOf(model, ruleFilter);
  const matches = matchesSql(model, {
    match: plan.match,
    own,
    ruleFilter,
    fts: plan.fts,
    isPrepared: visible !== null,
  });
  return {
    sql: `${visible === null ? "" : `WITH ${visible.sql} `}SELECT ${columns} FROM ${matches.sql}`,
    params: [...(visible?.params ?? []), ...matches.params],
  };
}

/**
 * Returns the CTE of the records that the rule's filter may show; null where no index has them next to each other. It ends behind
 * VISIBLE_RECORDS_FEW records, and is not used where there are more.
 */
export function visibleOf(model: TableModel, ruleFilter: ParsedFilter): SqlCondition | null {
  const part = boundedPart(model, ruleFilter);
  if (part === null) return null;
  const rows = `SELECT rowid AS ${ROW} FROM ${model.sql} WHERE ${part.sql} LIMIT ${VISIBLE_RECORDS_FEW + 1}`;
  return { sql: `${VISIBLE} AS MATERIALIZED (${rows})`, params: part.params };
}

export interface MatchesQuery {
  /** Condition on the index `f`; null: the table alone is read. */
  match: SqlCondition | null;
  /** The caller's condition on the table `t`; null: none. */
  own: SqlCondition | null;
  ruleFilter: ParsedFilter;
  fts: string;
  /** Whether the statement has the CTE of `visibleOf`: a hidden match is then left out without a look into the table. */
  isPrepared: boolean;
}

/** Returns FROM and WHERE of the matches that the rule's filter shows. */
export function matchesSql(model: TableModel, { match, own, ruleFilter, fts, isPrepared }: MatchesQuery): SqlCondition {
  const onTable = behindRule(ruleFilter, own, "t.");
  const isVisible = `CASE WHEN (SELECT count(*) FROM ${VISIBLE}) > ${VISIBLE_RECORDS_FEW} THEN 1 ELSE f.rowid IN (SELECT ${ROW} FROM ${VISIBLE}) END`;
  const prepared = isPrepared && match !== null ? { sql: isVisible, params: [] } : null;
  const parts = [match, prepared, onTable].filter((part) => part !== null);
  const where = parts.length === 0 ? { sql: "1", params: [] } : join(parts, "AND");
  const joined = onTable === null ? "" : ` JOIN ${model.sql} AS t ON t.rowid = f.rowid`;
  const from = match === null ? `${model.sql} AS t` : `${fts} AS f${joined}`;
  return { sql: `${from} WHERE ${where.sql}`, params: where.params };
}

export interface PageQuery {
  /** Order of the matches; null for the best match first, by the rank of the index. */
  sort: Sort | null;
  limit: number;
  offset: number;
}

/**
 * Returns the statement for one page, with the number of all matches in its first column. It scans the matches once and reads
 * only the records of the page. In the end, records of equal rank are ordered by id.
 */
export function pageSql(model: TableModel, found: SqlCondition, query: PageQuery): SqlCondition {
  const columns = model.columns.map((column) => `t.${column.sql}`);
  return pageOf(model, found, query, { columns, order: orderIn(query.sort, PAGE) });
}

/** Returns the statement for the number of all matches and the row ids of one page. */
export const rowsSql = (model: TableModel, found: SqlCondition, query: PageQuery): SqlCondition =>
  pageOf(model, found, query, { columns: ["t.rowid"], order: orderIn(query.sort, PAGE) });

const orderIn = (sort: Sort | null, cte: string): SqlCondition =>
  sort === null ? { sql: `${cte}.${RANK}, t."id"`, params: [] } : orderBy(sort, { reverse: false, alias: "t." });

/** Returns the statement for columns of the records of a page, behind the number of all matches. */
export function pageOf(
  model: TableModel,
  found: SqlCondition,
  { sort, limit, offset }: PageQuery,
  { columns, order }: { columns: readonly string[]; order: SqlCondition },
): SqlCondition {
  const inFound = orderIn(sort, FOUND);
  const edge = `SELECT ${RANK} FROM ${FOUND} ORDER BY ${RANK} LIMIT 1 OFFSET ${offset + limit - 1}`;
  const within = sort === null ? ` WHERE ${FOUND}.${RANK} <= ifnull((${edge}), 9e999)` : "";
  const joined = (cte: string): string => `${cte} CROSS JOIN ${model.sql} AS t ON t.rowid = ${cte}.${ROW}`;
  return {
    sql:
      `WITH ${FOUND} AS MATERIALIZED (${found.sql}), ` +
      `${PAGE} AS MATERIALIZED (SELECT ${FOUND}.* FROM ${joined(FOUND)}${within} ORDER BY ${inFound.sql} LIMIT ${limit} OFFSET ${offset}) ` +
      `SELECT ${[`(SELECT count(*) FROM ${FOUND})`, ...columns].join(", ")} FROM ${joined(PAGE)} ORDER BY ${order.sql}`,
    params: [...found.params, ...inFound.params, ...order.params],
  };
}

/** Alias of the asked table. No table has this name: names do not begin with `_platform`. */
const ASKED = "_platform_asked";

/**
 * Returns a condition that all matches of a rule's filter meet, whose own matches an index has next to each other, or in one place
 * for each value: the conditions of the filter, or those of a relation in it, such as the teams of a member. null: there is none.
 */
function boundedPart(model: TableModel, { all, groups }: ParsedFilter): SqlCondition | null {
  if (isBounded(model, all)) return filterToSql({ ...NO_FILTER, all }, `${model.sql}.`);
  for (const group of groups) {
    const part = isRelation(group) && group.kind === "some" ? relatedPart(model, group) : null;
    if (part !== null) return part;
  }
  return null;
}

function isBounded(model: TableModel, all: ParsedFilter["all"]): boolean {
  const [only] = all;
  const isList = all.length === 1 && only?.operator === "in" && !only.field.isJson;
  return (isList && isIndexed(model, only.field.name)) || (all.length > 0 && coveringIndex(model, all) !== null);
}

/** Returns the values that the relation's own conditions find for the field with which it is joined, where indexes have both. */
function relatedPart(model: TableModel, { model: asked, filters: [{ all, groups }] }: Relation): SqlCondition | null {
  const joins = groups.filter((one) => one.kind === "join");
  const entered = joins.find(({ operator, outer }) => operator === "==" && isIndexed(model, outer.name));
  const isFound = all.some(
    ({ field, operator }) => !field.isJson && (operator === "==" || operator === "in") && isIndexed(asked, field.name),
  );
  const where = isFound ? filterToSql({ ...NO_FILTER, all }, `${ASKED}.`) : null;
  if (entered === undefined || where === null) return null;
  const values = `SELECT ${ASKED}.${entered.field.column.sql} FROM ${asked.sql} AS ${ASKED} WHERE ${where.sql}`;
  return { sql: `${model.sql}.${entered.outer.column.sql} IN (${values})`, params: where.params };
}

const isIndexed = ({ indexes }: TableModel, field: string): boolean =>
  indexes.some(({ columns }) => columns[0] === field);
