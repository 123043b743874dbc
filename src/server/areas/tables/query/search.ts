import type { Database } from "bun:sqlite";
import { badField, tooLarge } from "../../../../kernel/errors.ts";
import type { ListResult } from "../../../config/app/index.ts";
import type { TableRecord } from "../../../config/types.ts";
import {
  createQuickPage,
  type DatabaseFile,
  type HighlightRequest,
  type PageBounds,
  quoteIdentifier,
  type RankRequest,
  type ReadCaller,
} from "../../../db/index.ts";
import type { Expanding } from "../expand/expand.ts";
import { parseExpand } from "../expand/paths.ts";
import { hasRelations, NO_FILTER } from "../filters/filter.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import { isLight } from "../filters/read-cost.ts";
import { parseSort, type Sort } from "../filters/sort.ts";
import {
  RANKED_RECORDS_MAX,
  RARE_CHARS_MAX,
  RARE_PLACES_MAX,
  SEARCH_PAGE_BYTES_MAX,
  SEARCH_TIMEOUT_MS,
} from "../limits.ts";
import { isJsonText, type TableModel } from "../model/model.ts";
import type { ReadRequest, SearchValues } from "../model/requests.ts";
import type { Table } from "../records/namespaces.ts";
import { withOwnAddress } from "../records/users-view.ts";
import type { Grant } from "../rules/access.ts";
import { limitOf, parseFields, parseFilters, pick } from "./list-query.ts";
import { mayTakeLong } from "./matches.ts";
import { preparedOf } from "./prepared-reads.ts";
import { notByRecord, type Reads, type Source } from "./reads.ts";
import { foundSql, pageSql, planSearch } from "./search-plan.ts";
import { rankedPageSql, rankRequest } from "./search-rank.ts";

/** Searches by words and by meaning, with the rights of the caller's grant. */
export type HybridSearch = (
  asked: ReadRequest<SearchValues>,
  source: Source,
  parsed: { query: SearchValues; granted: Grant },
) => Promise<ListResult>;

export function createSearch(deps: { reads: Reads; expanding: Expanding; hybrid: HybridSearch }) {
  return {
    /** Searches the table. Errors: 400 without `q` or without full-text search, 413 for a page that is too large. [TB41] */
    async search(asked: ReadRequest<SearchValues>, source: Source): Promise<ListResult> {
      const { principal } = asked;
      const granted = await deps.reads.grant(principal, source);
      if (granted.kind === "record") throw notByRecord(principal);
      const { table, file } = source;
      const { model } = table;
      const query = asked.query();
      if (query.mode === "hybrid") return deps.hybrid(asked, source, { query, granted });
      const plan = planSearch(model, query, textPlaces(model));
      const limit = limitOf(query);
      const offset = searchOffset(query, limit);
      const fields = parseFields(model, query.fields);
      const expand = parseExpand(model, query.expand);
      const readable = await deps.reads.readableTables(principal, source, query);
      const filter = parseFilters(model, query, readable);
      const ruleFilter = granted.kind === "filter" ? granted.filter : NO_FILTER;
      const newest = granted.kind === "filter" && query.sort === undefined ? newestFirst(model) : null;
      const sort = query.sort === undefined ? newest : parseSort(model, query.sort, readable.own);
      const page = { page: Math.floor(offset / limit) + 1, perPage: limit, hasMore: null, cursor: null };
      if (plan === null || file === null || model.fts === null) return { items: [], total: 0, ...page };

      const found = foundSql(model, { plan, filter, ruleFilter, isRanked: sort === null });
      // The scores of the index depend on the words of hidden records. [TB123]
      const rank =
        newest !== null && offset < RANKED_RECORDS_MAX
          ? rankRequest(model, { plan, fts: model.fts, ruleFilter, found, newest, limit, offset })
          : null;
      const statement =
        rank === null ? pageSql(model, found, { sort, limit, offset }) : { sql: rankedPageSql(model), params: [] };
      const isQuick = (): boolean => {
        // A relation may look at any number of records, however few matches there are.
        const isRelated = hasRelations(filter) || hasRelations(ruleFilter);
        if (plan.terms === null || isRelated || mayTakeLong(filter, granted)) return false;
        return isLight(preparedOf(table).count(filter, granted).made.cost) && areRare(file, model, plan.terms);
      };
      const search = { ...statement, highlight: plan.highlight, rank };
      const quick = await deps.reads.inTurn(file, () => (isQuick() ? quickHits(table, file, search) : null));
      const hits = quick ?? (await longHits(table, file, search, asked));
      const records = hits.map(({ record }) => record);
      const shown = (record: TableRecord, place: number) => ({
        ...withOwnAddress(principal, model, pick(record, fields)),
        highlights: hits[place]?.highlights ?? {},
      });
      const items = await deps.expanding.answers(principal, source, expand, records, shown, asked);
      if (hits.length > 0 || offset === 0) return { items, total: hits[0]?.total ?? 0, ...page };
      const counting = `SELECT count(*) FROM (${found.sql})`;
      const counted = await file.read(counting, found.params, { timeoutMs: SEARCH_TIMEOUT_MS, caller: asked });
      return { items, total: Number(counted[0]?.[0] ?? 0), ...page };
    },
  };
}

interface Hit {
  record: TableRecord;
  highlights: Record<string, string>;
  /** Number of all matches. */
  total: number;
}

/** Statement of a page of matches, with its marks and its order. */
type PageSearch = SqlCondition & { highlight: HighlightRequest; rank: RankRequest | null };

/** Reads a page of the matches of rare words on the main thread; null where they have too much text for it. */
function quickHits({ model, store }: Table, file: DatabaseFile, search: PageSearch): Hit[] | null {
  const rows = quickPage((sql) => file.query(sql), { ...search, page: null });
  return rows === null ? null : rows.map((values) => hitOf(model, store, values));
}

const quickPage = createQuickPage(RARE_CHARS_MAX);

/** Reads a page of matches in a query process, which enforces the timeout: the time of a search depends on the texts. */
async function longHits(
  { model, store }: Table,
  file: DatabaseFile,
  { sql, params, ...search }: PageSearch,
  caller: ReadCaller | undefined,
): Promise<Hit[]> {
  const decode = (values: unknown[]): Hit => hitOf(model, store, values);
  const options = { ...search, page: boundsOf(model), decode, timeoutMs: SEARCH_TIMEOUT_MS, caller };
  const { rows, bytes, isCut } = await file.readPage(sql, params, options);
  if (!isCut && bytes <= SEARCH_PAGE_BYTES_MAX) return rows;
  throw tooLarge(`The page holds more than ${SEARCH_PAGE_BYTES_MAX} bytes; request fewer records with a lower limit`);
}

export function boundsOf(model: TableModel): PageBounds {
  const names = [...model.columns.map(({ name }) => name), ...(model.fts?.fields ?? []), "highlights"];
  return {
    bytesMax: SEARCH_PAGE_BYTES_MAX,
    rowBytes: JSON.stringify(names).length + names.length,
    jsonColumns: model.columns.flatMap(({ type }, index) => (isJsonText(type) ? [1 + index] : [])),
  };
}

const hitOf = (model: TableModel, { codec }: Table["store"], [total, ...values]: unknown[]): Hit => ({
  record: codec.fromValues(values),
  highlights: highlightsOf(model, values.slice(model.columns.length)),
  total: Number(total),
});

/** Returns the index of each searched text in a row of `pageSql`. */
export const textPlaces = (model: TableModel): number[] =>
  (model.fts?.fields ?? []).map((field) => 1 + model.columns.findIndex(({ name }) => name === field));

export function highlightsOf(model: TableModel, marked: readonly unknown[]): Record<string, string> {
  const highlights: Record<string, string> = {};
  for (const [index, field] of (model.fts?.fields ?? []).entries()) {
    const text = marked[index];
    if (typeof text === "string") highlights[field] = text;
  }
  return highlights;
}

/** Returns the order of the matches that are not ranked, and by which the ranked ones are chosen. */
export const newestFirst = (model: TableModel): Sort =>
  parseSort(model, model.hasCreatedAt ? "createdAt:desc,id:desc" : "id:desc");

export function searchOffset({ page, offset }: SearchValues, limit: number): number {
  if (page === undefined) return offset ?? 0;
  if (offset !== undefined) throw badField("page", "invalid_value", "page and offset cannot be used together");
  return (page - 1) * limit;
}

/** Views of the places of words in the search indexes of a connection, by their quoted names. */
const views = new WeakMap<Database, Set<string>>();

/**
 * Whether the search index has so few places with these words that a search for them runs on the main thread. `words` are terms
 * of the index; the last one is the beginning of others. False inside of a write.
 */
function areRare(file: DatabaseFile, { name, fts }: TableModel, words: readonly string[]): boolean {
  file.assertReadable();
  // The view is made outside of a write, which may be undone.
  if (fts === null || file.tableVersion(name) === null) return false;
  const view = viewOf(file.sqlite, name, fts.sql);
  let left = RARE_PLACES_MAX;
  for (const [place, word] of words.entries()) {
    const isPrefix = place === words.length - 1;
    const terms = isPrefix ? "term >= ? AND term < ?" : "term = ?";
    // Every character of a text is less than the last one of Unicode, which is none.
    const values = isPrefix ? [word, `${word}\u{10ffff}`] : [word];
    const sql = `SELECT count(*) FROM (SELECT 1 FROM ${view} WHERE ${terms} LIMIT ${RARE_PLACES_MAX + 1})`;
    const [[count] = []] = file.query(sql).values(...values);
    left -= Number(count);
    if (left < 0) return false;
  }
  return true;
}

/** Returns the quoted name of the view of a table's index. It belongs to the connection, and is not in the file. */
function viewOf(sqlite: Database, table: string, index: string): string {
  const known = views.get(sqlite) ?? new Set<string>();
  views.set(sqlite, known);
  const view = `temp.${quoteIdentifier(`_platform_words:${table}`)}`;
  if (!known.has(view)) {
    sqlite.run(`CREATE VIRTUAL TABLE ${view} USING fts5vocab('main', ${index}, 'instance')`);
    known.add(view);
  }
  return view;
}
