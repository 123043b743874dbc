import type { Principal } from "../access/principal.ts";
import type { ListResult } from "../config/app-access.ts";
import type { TableRecord } from "../config/types.ts";
import type { ReadCaller, SqlValue } from "../db/index.ts";
import { badField, badRequest } from "../kernel/errors.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import { NO_FILTER } from "./filter.ts";
import { behindRule, filterToSql, join, type SqlCondition } from "./filter-sql.ts";
import { highlight, type Marks, markHighlighted, PRIVATE_MARKS } from "./highlight.ts";
import { type Parameters, parseFields, parseFilters, parseLimit, parseOffset, pick } from "./list-query.ts";
import type { TableModel } from "./model.ts";
import { notByRecord, type Reads, type Source } from "./reads.ts";
import { orderBy, parseSort, type Sort } from "./sort.ts";

const QUERY_LENGTH_MAX = 1_000;
const QUERY_WORDS_MAX = 32;
/** What the trigram index cannot answer. */
const TRIGRAM_LENGTH_MIN = 3;
const MARK_DEFAULTS: Marks = { pre: "<mark>", post: "</mark>" };
const MARK_LENGTH_MAX = 256;

export interface Search {
  /** Errors: 400 without `q` or without full-text search. Spec: Table rule 8; decisions 4 (Search). */
  search(principal: Principal, source: Source, query: Parameters, caller?: ReadCaller): MaybePromise<ListResult>;
}

export function createSearch(deps: { reads: Reads }): Search {
  return {
    async search(principal, source, query, caller) {
      const granted = await deps.reads.grant(principal, source);
      if (granted.kind === "record") throw notByRecord(principal);
      const { table, file } = source;
      const { model, store } = table;
      const plan = planSearch(model, query);
      const limit = parseLimit(query);
      const offset = searchOffset(query, limit);
      const fields = parseFields(model, query.get("fields"));
      const filter = parseFilters(model, query);
      const sort = query.get("sort") === null ? null : parseSort(model, query.get("sort"));
      const marks = parseMarks(query);
      const page = { page: Math.floor(offset / limit) + 1, perPage: limit, hasMore: null, cursor: null };
      if (plan === null || file === null) return { items: [], total: 0, ...page };

      const ruleFilter = granted.kind === "filter" ? granted.filter : NO_FILTER;
      const found = foundSql(model, plan, behindRule(ruleFilter, filterToSql(filter, "t."), "t."), {
        isRanked: sort === null,
      });
      const rows = await store.rows(file, pageSql(model, plan, found, { sort, limit, offset }), caller);
      const records = rows.map((values) => store.codec.fromValues(values.slice(1)));
      const items = records.map((record, index) => ({
        ...pick(record, fields),
        highlights: plan.highlight(record, rows[index]?.slice(1 + model.columns.length) ?? [], marks),
      }));
      if (rows.length > 0 || offset === 0) return { items, total: Number(rows[0]?.[0] ?? 0), ...page };
      const all = { sql: `SELECT count(*) FROM (${found.sql})`, params: found.params };
      const counted = await store.rows(file, all, caller);
      return { items, total: Number(counted[0]?.[0] ?? 0), ...page };
    },
  };
}

/** What stands beside the declared names in a statement; none of them begins with `_platform`. */
const FOUND = "_platform_found";
const PAGE = "_platform_page";
const ROW = "_platform_row";
const RANK = "_platform_rank";

/** Every match: its rowid, and its rank where the best come first. */
function foundSql(
  model: TableModel,
  plan: SearchPlan,
  filter: SqlCondition | null,
  options: { isRanked: boolean },
): SqlCondition {
  const conditions = [plan.match, plan.like, filter].filter((part) => part !== null);
  const where = join(conditions, "AND");
  const rank = options.isRanked && plan.match !== null ? "f.rank" : "0";
  const { fts } = plan;
  const needsTable = plan.like !== null || filter !== null;
  const from =
    plan.match === null
      ? `${model.sql} AS t`
      : `${fts} AS f${needsTable ? ` JOIN ${model.sql} AS t ON t.rowid = f.rowid` : ""}`;
  return {
    sql: `SELECT ${plan.match === null ? "t" : "f"}.rowid AS ${ROW}, ${rank} AS ${RANK} FROM ${from} WHERE ${where.sql}`,
    params: where.params,
  };
}

/**
 * One page with the number of all matches in its first column. The matches are gone through once; records and highlights
 * are fetched for the page alone, and ties at its end are settled by the id among those of that rank.
 */
function pageSql(
  model: TableModel,
  plan: SearchPlan,
  found: SqlCondition,
  { sort, limit, offset }: { sort: Sort | null; limit: number; offset: number },
): SqlCondition {
  const orderIn = (cte: string) =>
    sort === null ? { sql: `${cte}.${RANK}, t."id"`, params: [] } : orderBy(sort, { reverse: false, alias: "t." });
  const [inFound, inPage] = [orderIn(FOUND), orderIn(PAGE)];
  const edge = `SELECT ${RANK} FROM ${FOUND} ORDER BY ${RANK} LIMIT 1 OFFSET ${offset + limit - 1}`;
  const within = sort === null ? ` WHERE ${FOUND}.${RANK} <= ifnull((${edge}), 9e999)` : "";
  const joined = (cte: string): string => `${cte} CROSS JOIN ${model.sql} AS t ON t.rowid = ${cte}.${ROW}`;
  const columns = model.columns.map((column) => `t.${column.sql}`);
  const highlights = plan.highlights.map((one) => one.sql);
  const isHighlighted = plan.match !== null && highlights.length > 0;
  return {
    sql:
      `WITH ${FOUND} AS MATERIALIZED (${found.sql}), ` +
      `${PAGE} AS MATERIALIZED (SELECT ${FOUND}.* FROM ${joined(FOUND)}${within} ORDER BY ${inFound.sql} LIMIT ${limit} OFFSET ${offset}) ` +
      `SELECT ${[`(SELECT count(*) FROM ${FOUND})`, ...columns, ...highlights].join(", ")} FROM ${joined(PAGE)}` +
      `${isHighlighted ? ` CROSS JOIN ${plan.fts} AS f ON f.rowid = ${PAGE}.${ROW} AND ${plan.match?.sql}` : ""} ORDER BY ${inPage.sql}`,
    params: [
      ...found.params,
      ...inFound.params,
      ...plan.highlights.flatMap((one) => one.params),
      ...(isHighlighted ? (plan.match?.params ?? []) : []),
      ...inPage.params,
    ],
  };
}

function searchOffset(query: Parameters, limit: number): number {
  const page = query.get("page");
  if (page === null) return parseOffset(query);
  if (query.get("offset") !== null) throw badField("page", "invalid_value", "page and offset cannot be used together");
  if (!/^[1-9]\d{0,14}$/.test(page))
    throw badField("page", "invalid_value", `page must be a whole number from 1, got "${page}"`);
  return (Number(page) - 1) * limit;
}

function parseMarks(query: Parameters): Marks & { isDefault: boolean } {
  const pre = query.get("highlightPre") ?? MARK_DEFAULTS.pre;
  const post = query.get("highlightPost") ?? MARK_DEFAULTS.post;
  for (const [name, text] of Object.entries({ highlightPre: pre, highlightPost: post })) {
    if (text.length > MARK_LENGTH_MAX)
      throw badField(name, "too_long", `${name} must have at most ${MARK_LENGTH_MAX} characters`);
  }
  return { pre, post, isDefault: pre === MARK_DEFAULTS.pre && post === MARK_DEFAULTS.post };
}

interface SearchPlan {
  /** The quoted name of the index. */
  fts: string;
  /** What the index answers, on `f`; null when no word is long enough for it. */
  match: SqlCondition | null;
  /** What a scan has to answer, on `t`. */
  like: SqlCondition | null;
  /** Columns selected beside the record's. */
  highlights: { sql: string; params: SqlValue[] }[];
  highlight(
    record: TableRecord,
    marked: readonly unknown[],
    marks: Marks & { isDefault: boolean },
  ): Record<string, string>;
}

/** null: there is no word in `q`, so nothing is found. */
function planSearch(model: TableModel, query: Parameters): SearchPlan | null {
  const { fts } = model;
  if (fts === null) throw badRequest(`${model.name} has no full-text search`);
  const q = query.get("q");
  if (q === null || q === "") throw badField("q", "required", "q is required");
  if (q.length > QUERY_LENGTH_MAX)
    throw badField("q", "too_long", `q must have at most ${QUERY_LENGTH_MAX} characters`);
  const words = wordsOf(q);
  if (words.length > QUERY_WORDS_MAX) throw badField("q", "too_long", `q must have at most ${QUERY_WORDS_MAX} words`);
  if (words.length === 0) return null;
  return fts.tokenize === "trigram" ? planTrigram(model, fts, words) : planWords(fts, words);
}

/** Pieces between white space that hold a letter or a digit. FTS5 ends its queries at NUL, so it separates too. */
const wordsOf = (q: string): string[] => q.split(/[\s\0]+/u).filter((word) => /[\p{L}\p{N}\p{Co}]/u.test(word));

/** Inside quotes nothing is syntax but the quote itself. */
const quoted = (word: string): string => `"${word.replaceAll('"', '""')}"`;

type Fts = NonNullable<TableModel["fts"]>;

function planWords(fts: Fts, words: readonly string[]): SearchPlan {
  return {
    fts: fts.sql,
    // All words have to occur, and the last one may be unfinished.
    match: { sql: `f.${fts.sql} MATCH ?`, params: [`${words.map(quoted).join(" ")}*`] },
    like: null,
    highlights: fts.fields.map((_, index) => ({
      sql: `highlight(f.${fts.sql}, ${index}, ?, ?)`,
      params: [PRIVATE_MARKS.pre, PRIVATE_MARKS.post],
    })),
    highlight(_record, marked, marks) {
      const highlights: Record<string, string> = {};
      for (const [index, field] of fts.fields.entries()) {
        const text = marked[index];
        if (typeof text === "string" && text.includes(PRIVATE_MARKS.pre))
          highlights[field] = markHighlighted(text, marks);
      }
      return highlights;
    },
  };
}

function planTrigram(model: TableModel, fts: Fts, words: readonly string[]): SearchPlan {
  const isLong = (word: string) => [...word].length >= TRIGRAM_LENGTH_MIN;
  const long = words.filter(isLong);
  const likes = words.filter((word) => !isLong(word)).map((word) => anyFieldLike(model, fts, word));
  return {
    fts: fts.sql,
    match: long.length === 0 ? null : { sql: `f.${fts.sql} MATCH ?`, params: [long.map(quoted).join(" ")] },
    like: likes.length === 0 ? null : join(likes, "AND"),
    highlights: [],
    highlight(record, _marked, marks) {
      const highlights: Record<string, string> = {};
      for (const field of fts.fields) {
        const text = record[field];
        const marked = typeof text === "string" ? highlight(text, words) : null;
        if (marked !== null) highlights[field] = markHighlighted(marked, marks);
      }
      return highlights;
    },
  };
}

function anyFieldLike(model: TableModel, fts: Fts, word: string): SqlCondition {
  const pattern = `%${word.replace(/[\\%_]/g, "\\$&")}%`;
  const columns = fts.fields.map((field) => model.byName.get(field)).filter((column) => column !== undefined);
  return join(
    columns.map((column) => ({ sql: `t.${column.sql} LIKE ? ESCAPE '\\'`, params: [pattern] })),
    "OR",
  );
}
