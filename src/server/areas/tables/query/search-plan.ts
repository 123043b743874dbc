import { badField, badRequest } from "../../../../kernel/errors.ts";
import { ftsTokenizer, type HighlightRequest } from "../../../db/index.ts";
import type { ParsedFilter } from "../filters/filter.ts";
import { behindRule, filterToSql, join, type SqlCondition } from "../filters/filter-sql.ts";
import { orderBy, type Sort } from "../filters/sort.ts";
import { QUERY_WORDS_MAX, TRIGRAM_LENGTH_MIN } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { SearchValues } from "../model/requests.ts";

const MARK_DEFAULTS = { pre: "<mark>", post: "</mark>" };

/** Conditions of a search on the index and on the table. */
export interface SearchPlan {
  /** Quoted name of the index. */
  fts: string;
  /** Condition on the index `f`; null when no word is long enough for it. */
  match: SqlCondition | null;
  /** Condition for a scan of the table `t`; null when there is none. */
  like: SqlCondition | null;
  highlight: HighlightRequest;
}

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

type Fts = NonNullable<TableModel["fts"]>;

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

function planWords(fts: Fts, words: readonly string[], marks: Marks): SearchPlan {
  const phrases = words.map(quoted);
  return {
    fts: fts.sql,
    // All words must occur; the last one may be a prefix.
    match: { sql: `f.${fts.sql} MATCH ?`, params: [`${phrases.join(" ")}*`] },
    like: null,
    highlight: { ...marks, by: "words", tokenize: ftsTokenizer(fts.tokenize), query: `${phrases.join(" OR ")}*` },
  };
}

function planTrigram(model: TableModel, fts: Fts, words: readonly string[], marks: Marks): SearchPlan {
  const isLong = (word: string) => [...word].length >= TRIGRAM_LENGTH_MIN;
  const long = words.filter(isLong);
  const likes = words.filter((word) => !isLong(word)).map((word) => anyFieldLike(model, fts, word));
  return {
    fts: fts.sql,
    match: long.length === 0 ? null : { sql: `f.${fts.sql} MATCH ?`, params: [long.map(quoted).join(" ")] },
    like: likes.length === 0 ? null : join(likes, "AND"),
    highlight: { ...marks, by: "substrings", terms: words },
  };
}

function anyFieldLike(model: TableModel, fts: Fts, word: string): SqlCondition {
  const columns = fts.fields.map((field) => model.byName.get(field)).filter((column) => column !== undefined);
  const patterns = casesOf(word).map((text) => `%${text.replace(/[\\%_]/g, "\\$&")}%`);
  return join(
    columns.flatMap((column) =>
      patterns.map((pattern) => ({ sql: `t.${column.sql} LIKE ? ESCAPE '\\'`, params: [pattern] })),
    ),
    "OR",
  );
}

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

export interface FoundQuery {
  plan: SearchPlan;
  filter: ParsedFilter;
  /** Filter of the read rule. */
  ruleFilter: ParsedFilter;
  /** Whether the best match comes first. */
  isRanked: boolean;
}

/** Returns the statement for the rowid of every match, and its rank when matches are ranked. */
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
  /** Order of the matches; null for the best match first. */
  sort: Sort | null;
  limit: number;
  offset: number;
}

/**
 * Returns the statement for one page, with the number of all matches in its first column. It scans the matches once and reads
 * only the records of the page. In the end, records of equal rank are ordered by id.
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
