import type { Principal } from "../access/principal.ts";
import type { ListResult } from "../config/app-access.ts";
import type { TableRecord } from "../config/types.ts";
import type { SqlValue } from "../db/index.ts";
import { badField, badRequest } from "../kernel/errors.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import { join, type SqlCondition } from "./filter-sql.ts";
import { highlight, type Marks, markHighlighted, PRIVATE_MARKS } from "./highlight.ts";
import { type Parameters, parseFields, parseFilters, parseLimit, parseOffset, pick } from "./list-query.ts";
import type { TableModel } from "./model.ts";
import { type Reads, type Source, whereOf } from "./reads.ts";
import { orderBy, parseSort } from "./sort.ts";

const QUERY_LENGTH_MAX = 1_000;
const QUERY_WORDS_MAX = 32;
/** What the trigram index cannot answer. */
const TRIGRAM_LENGTH_MIN = 3;
const MARK_DEFAULTS: Marks = { pre: "<mark>", post: "</mark>" };
const MARK_LENGTH_MAX = 256;

export interface Search {
  /** Errors: 400 without `q` or without full-text search. Spec: Table rule 8; decisions 4 (Search). */
  search(principal: Principal, source: Source, query: Parameters): MaybePromise<ListResult>;
}

export function createSearch(deps: { reads: Reads }): Search {
  return {
    async search(principal, source, query) {
      const granted = await deps.reads.grant(principal, source);
      const { table, file } = source;
      const { model, store } = table;
      const plan = planSearch(model, query);
      const limit = parseLimit(query);
      const offset = searchOffset(query, limit);
      const fields = parseFields(model, query.get("fields"));
      const filter = parseFilters(model, query);
      const sort = query.get("sort") === null ? null : parseSort(model, query.get("sort"));
      const marks = parseMarks(query);
      const ids = { page: Math.floor(offset / limit) + 1, perPage: limit, hasMore: null, cursor: null };
      if (plan === null || file === null) return { items: [], total: granted.kind === "record" ? null : 0, ...ids };

      const filtered = whereOf(filter, granted, "t.");
      const where = filtered === null ? plan.where : join([plan.where, filtered], "AND");
      const order = sort === null ? plan.bestFirst : orderBy(sort, { reverse: false, alias: "t." });
      const select = [...model.columns.map((column) => `t.${column.sql}`), ...plan.highlights.map((one) => one.sql)];
      const rows = await store.rows(file, {
        sql: `SELECT ${select.join(", ")} FROM ${plan.from} WHERE ${where.sql} ORDER BY ${order.sql} LIMIT ${limit} OFFSET ?`,
        params: [...plan.highlights.flatMap((one) => one.params), ...where.params, ...order.params, offset],
      });
      const found = rows.map((values) => ({
        record: store.codec.fromValues(values),
        marked: values.slice(model.columns.length),
      }));
      const records = found.map(({ record }) => record);
      await deps.reads.allReadable(principal, source, granted, records);
      const total = granted.kind === "record" ? null : await countOf(source, plan, where);
      const items = found.map(({ record, marked }) => ({
        ...pick(record, fields),
        highlights: plan.highlight(record, marked, marks),
      }));
      return { items, total, ...ids };
    },
  };
}

async function countOf({ table, file }: Source, plan: SearchPlan, where: SqlCondition): Promise<number> {
  if (file === null) return 0;
  const sql = `SELECT count(*) FROM ${plan.from} WHERE ${where.sql}`;
  const rows = await table.store.rows(file, { sql, params: where.params });
  return Number(rows[0]?.[0] ?? 0);
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
  from: string;
  where: SqlCondition;
  bestFirst: SqlCondition;
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
  return fts.tokenize === "trigram" ? planTrigram(model, fts, words) : planWords(model, fts, words);
}

/** Pieces between white space that hold a letter or a digit. FTS5 ends its queries at NUL, so it separates too. */
const wordsOf = (q: string): string[] => q.split(/[\s\0]+/u).filter((word) => /[\p{L}\p{N}\p{Co}]/u.test(word));

/** Inside quotes nothing is syntax but the quote itself. */
const quoted = (word: string): string => `"${word.replaceAll('"', '""')}"`;

type Fts = NonNullable<TableModel["fts"]>;

function planWords(model: TableModel, fts: Fts, words: readonly string[]): SearchPlan {
  // All words have to occur, and the last one may be unfinished.
  const match = `${words.map(quoted).join(" ")}*`;
  return {
    from: `${fts.sql} AS f JOIN ${model.sql} AS t ON t.rowid = f.rowid`,
    where: { sql: `f.${fts.sql} MATCH ?`, params: [match] },
    bestFirst: { sql: 'f.rank, t."id"', params: [] },
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
  const long = words.filter((word) => [...word].length >= TRIGRAM_LENGTH_MIN);
  const short = words.filter((word) => [...word].length < TRIGRAM_LENGTH_MIN);
  const parts: SqlCondition[] = short.map((word) => anyFieldLike(model, fts, word));
  if (long.length > 0) parts.unshift({ sql: `f.${fts.sql} MATCH ?`, params: [long.map(quoted).join(" ")] });
  return {
    from: long.length > 0 ? `${fts.sql} AS f JOIN ${model.sql} AS t ON t.rowid = f.rowid` : `${model.sql} AS t`,
    where: join(parts, "AND"),
    bestFirst: { sql: long.length > 0 ? 'f.rank, t."id"' : 't."id"', params: [] },
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
