import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, badField, badRequest, notFound } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { Principal } from "../../../access/principal.ts";
import type { AppAccess, ListResult } from "../../../config/app/index.ts";
import type { RateLimit, TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, HighlightRequest, ReadCaller } from "../../../db/index.ts";
import { createRateLimiter } from "../../../http/rate-limit.ts";
import type { Expanding } from "../expand/expand.ts";
import { parseExpand } from "../expand/paths.ts";
import { NO_FILTER } from "../filters/filter.ts";
import { HYBRID_DEPTH, NEAREST_DEFAULT, SEARCH_PAGE_BYTES_MAX, SEARCH_TIMEOUT_MS } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { NearestValues, ReadRequest, SearchValues } from "../model/requests.ts";
import { limitOf, parseFields, parseFilters, pick } from "../query/list-query.ts";
import { notByRecord, type Reads, type Source } from "../query/reads.ts";
import { boundsOf, type HybridSearch, highlightsOf, newestFirst, searchOffset, textPlaces } from "../query/search.ts";
import { foundSql, planSearch, rowsSql, type SearchPlan } from "../query/search-plan.ts";
import { rankRequest } from "../query/search-rank.ts";
import type { Table } from "../records/namespaces.ts";
import { withOwnAddress } from "../records/users-view.ts";
import type { Grant } from "../rules/access.ts";
import { fuse } from "./fusion.ts";
import type { EmbeddedModel } from "./machine.ts";
import { DIMENSIONS, type Narrowed, nearestSql, recordsSql } from "./nearest-sql.ts";
import { createQueryVectors } from "./query-vectors.ts";

type Embedded = TableModel & EmbeddedModel;

interface Found {
  row: number;
  record: TableRecord;
  highlights: Record<string, string>;
}

/** Number of a row, and of a distance: two numbers and their names in an answer. */
const ROWS_PAGE = { bytesMax: 64 * 1024, rowBytes: 32, jsonColumns: [] };

/** Returns the model of a table whose records have vectors. Errors: those of `missing`. */
function embeddedModel({ model }: Table, missing: (message: string) => AppError): Embedded {
  const { embed } = model;
  if (embed === null) throw missing(`${model.name} has no vectors: the table declares no embed`);
  return { ...model, embed };
}

/** Creates what finds rows by their vectors, and records by their rows, in query processes. */
function createFinding(deps: { vectorLibrary: () => string }) {
  const optionsOf = (caller: ReadCaller) => ({ timeoutMs: SEARCH_TIMEOUT_MS, caller });

  /** Returns the row ids and distances of the nearest records. */
  const nearest = async (
    file: DatabaseFile,
    model: Embedded,
    narrowed: Narrowed,
    { caller, ...wanted }: { vector: Uint8Array; limit: number; except: string | null; caller: ReadCaller },
  ): Promise<[row: number, distance: number][]> => {
    const { sql, params } = nearestSql(model, narrowed, wanted);
    const rows = await file.read(sql, params, { ...optionsOf(caller), library: deps.vectorLibrary() });
    return rows.map(([row, distance]) => [Number(row), Number(distance)]);
  };

  /** Reads records by their row ids, as far as they still pass. */
  const recordsOf = async (
    { table: { model, store }, file, caller }: { table: Table; file: DatabaseFile; caller: ReadCaller },
    narrowed: Narrowed,
    rows: readonly number[],
    highlight: HighlightRequest | null,
  ): Promise<Found[]> => {
    if (rows.length === 0) return [];
    const { sql, params } = recordsSql(model, narrowed, rows);
    const decode = ([row, ...values]: unknown[]): Found => ({
      row: Number(row),
      record: store.codec.fromValues(values),
      highlights: highlightsOf(model, values.slice(model.columns.length)),
    });
    const page = await file.readPage(sql, params, { ...optionsOf(caller), page: boundsOf(model), highlight, decode });
    if (!page.isCut && page.bytes <= SEARCH_PAGE_BYTES_MAX) return page.rows;
    throw new AppError(
      413,
      `The page holds more than ${SEARCH_PAGE_BYTES_MAX} bytes; request fewer records with a lower limit`,
    );
  };
  return { nearest, recordsOf };
}

/**
 * Creates searches by meaning, and those for the nearest records of one. Everything passes the filter of the read rule before the nearest are
 * chosen, so that hidden records change neither ranks nor numbers.
 */
export function createMeaning(deps: {
  reads: Reads;
  expanding: Expanding;
  app: () => AppAccess;
  limit: RateLimit;
  /** Path of sqlite-vec. */
  vectorLibrary: () => string;
  clock: Clock;
  logger: Logger;
}) {
  const { reads, expanding } = deps;
  const queryVectors = createQueryVectors(deps);
  const limiter = createRateLimiter(deps.limit, deps.clock);
  const countCall = ({ kind }: Principal, callerName: string): void => {
    if (kind === "user" || kind === "anonymous") limiter.hit(callerName);
  };
  const { nearest, recordsOf } = createFinding(deps);
  const search: HybridSearch = async (asked, source, { query, granted }) => {
    const { principal, callerName } = asked;
    const { table, file } = source;
    const model = embeddedModel(table, (message) => badField("mode", "invalid_value", message));
    if (query.sort !== undefined) {
      throw badField("sort", "invalid_value", "sort and mode=hybrid cannot be used together: the best match is first");
    }
    const plan = model.fts === null ? null : planSearch(model, query, textPlaces(model));
    const limit = limitOf(query);
    const offset = searchOffset(query, limit);
    const fields = parseFields(model, query.fields);
    const expand = parseExpand(model, query.expand);
    const narrowed = await narrowedBy(reads, asked, source, { query, granted });
    const page = { page: Math.floor(offset / limit) + 1, perPage: limit, hasMore: null, cursor: null };
    const q = query.q.trim();
    if (file === null || q === "") return { items: [], total: 0, ...page };
    countCall(principal, callerName);
    const vector = await queryVectors(model, q, callerName);
    await file.ready();
    checkDimensions(file, model, vector);
    const [byWords, byVector] = await Promise.all([
      plan === null ? [] : rowsByWords(file, model, { plan, narrowed, granted, caller: asked }),
      nearest(file, model, narrowed, { vector, limit: HYBRID_DEPTH, except: null, caller: asked }),
    ]);
    const rows = fuse([byWords, byVector.map(([row]) => row)]);
    const shownRows = rows.slice(offset, offset + limit);
    const found = await recordsOf({ table, file, caller: asked }, narrowed, shownRows, plan?.highlight ?? null);
    const shown = (record: TableRecord, place: number) => ({
      ...withOwnAddress(principal, model, pick(record, fields)),
      highlights: found[place]?.highlights ?? {},
    });
    const records = found.map(({ record }) => record);
    return {
      items: await expanding.answers(principal, source, expand, records, shown, asked),
      total: rows.length,
      ...page,
    };
  };

  return {
    search,
    /** Returns the records nearest to one, which the caller may read. Errors: 400 without vectors, 404, those of reads. */
    async nearest(asked: ReadRequest<NearestValues>, source: Source, id: string): Promise<ListResult> {
      const { principal } = asked;
      const granted = await reads.grant(principal, source);
      if (granted.kind === "record") throw notByRecord(principal);
      const query = asked.query();
      const { table, file } = source;
      const model = embeddedModel(table, badRequest);
      const fields = parseFields(model, query.fields);
      const expand = parseExpand(model, query.expand);
      const narrowed = await narrowedBy(reads, asked, source, { query, granted });
      const known = await reads.find(source, id, granted, asked);
      if (file === null || known === null) throw notFound(`There is no record "${id}" in ${model.name}`);
      await file.ready();
      const own = `SELECT "vector" FROM ${model.embed.vectors} WHERE "row" = (SELECT rowid FROM ${model.sql} WHERE "id" = ?)`;
      const vector = file.query<{ vector: Uint8Array }>(own).get(id)?.vector ?? null;
      const limit = query.limit ?? NEAREST_DEFAULT;
      const near =
        vector === null ? [] : await nearest(file, model, narrowed, { vector, limit, except: id, caller: asked });
      const distances = new Map(near);
      const found = await recordsOf({ table, file, caller: asked }, narrowed, [...distances.keys()], null);
      const shown = (record: TableRecord, place: number) => ({
        ...withOwnAddress(principal, model, pick(record, fields)),
        similarity: similarityAt(distances.get(found[place]?.row ?? 0) ?? 2),
      });
      const records = found.map(({ record }) => record);
      const items = await expanding.answers(principal, source, expand, records, shown, asked);
      return { items, total: null, page: 1, perPage: limit, hasMore: null, cursor: null };
    },
  };
}

/** Returns the row ids of the best matches of the words, among the records that the rule's filter shows. */
async function rowsByWords(
  file: DatabaseFile,
  model: Embedded,
  asked: { plan: SearchPlan; narrowed: Narrowed; granted: Grant; caller: ReadCaller },
): Promise<number[]> {
  const { plan, narrowed, granted, caller } = asked;
  const { filter, ruleFilter } = narrowed;
  if (model.fts === null) return [];
  const page = { limit: HYBRID_DEPTH, offset: 0 };
  const isRanked = granted.kind !== "filter";
  const found = foundSql(model, { plan, filter, ruleFilter, isRanked });
  // The scores of the index depend on the words of hidden records. [TB123]
  const rank = isRanked
    ? null
    : rankRequest(model, { plan, fts: model.fts, ruleFilter, found, newest: newestFirst(model), ...page });
  const { sql, params } = isRanked
    ? rowsSql(model, found, { sort: null, ...page })
    : { sql: `SELECT ?, value FROM json_each(?) ORDER BY key`, params: [] };
  const decode = ([, row]: unknown[]): number => Number(row);
  const options = { timeoutMs: SEARCH_TIMEOUT_MS, caller, page: ROWS_PAGE, rank, decode };
  return (await file.readPage(sql, params, options)).rows;
}

/** Refuses a vector of another length than those of the records. Errors: 503. */
function checkDimensions(file: DatabaseFile, { name }: Embedded, vector: Uint8Array): void {
  const state = file.query<{ dimensions: number | null }>(DIMENSIONS).get(name);
  const asked = vector.byteLength / Float32Array.BYTES_PER_ELEMENT;
  const stored = state?.dimensions ?? asked;
  if (stored === asked) return;
  throw new AppError(503, `The text got a vector of ${asked} numbers, and the records have ${stored}`);
}

/** Returns the cosine of the angle between two vectors of length 1, rounded to what 32 bits hold of it. */
const similarityAt = (distance: number): number => Math.round((1 - (distance * distance) / 2) * 1e6) / 1e6;

/** Returns the conditions of a request, and those of its rule. */
const narrowedBy = async (
  reads: Reads,
  { principal }: Pick<ReadRequest<SearchValues | NearestValues>, "principal">,
  source: Source,
  { query, granted }: { query: SearchValues | NearestValues; granted: Grant },
): Promise<Narrowed> => {
  const readable = await reads.readableTables(principal, source, query);
  const filter = parseFilters(source.table.model, query, readable);
  return { filter, ruleFilter: granted.kind === "filter" ? granted.filter : NO_FILTER };
};
