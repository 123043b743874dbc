import type { Principal } from "../access/principal.ts";
import type { ListResult } from "../config/app-access.ts";
import type { TableRecord } from "../config/types.ts";
import type { DatabaseFile, ReadCaller } from "../db/index.ts";
import { type AppError, badRequest, forbidden, notFound, unauthorized } from "../kernel/errors.ts";
import { chain, isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import { type Door, denied, type Grant } from "./access.ts";
import { encodeCursor } from "./cursor.ts";
import type { Condition, ParsedFilter } from "./filter.ts";
import { filterToSql, join, type SqlCondition } from "./filter-sql.ts";
import { coveringIndex, walkOf } from "./index-choice.ts";
import { type ListRequest, type Parameters, parseFields, parseFilters, pick } from "./list-query.ts";
import type { Matches, PreparedList } from "./list-sql.ts";
import type { TableModel } from "./model.ts";
import type { Table } from "./namespaces.ts";
import { beyond, parseSort } from "./sort.ts";

/** Matches that a count, or a batch by filter, looks at one by one, where the read rule wants to see each. Decisions 3. */
export const RULE_RECORDS_MAX = 10_000;

export const tooManyToAsk = (): AppError =>
  badRequest(`The read rule looks at each record, and more than ${RULE_RECORDS_MAX} match; narrow the filter`);

/** A table in its file; null where the instance has not been written to yet. */
export interface Source {
  table: Table;
  file: DatabaseFile | null;
}

export interface Reads {
  get(principal: Principal, source: Source, id: string, query: Parameters): MaybePromise<TableRecord>;
  /** `caller`: on whose behalf long reads run, by default the server's. */
  list(principal: Principal, source: Source, query: Parameters, caller?: ReadCaller): MaybePromise<ListResult>;
  count(principal: Principal, source: Source, query: Parameters, caller?: ReadCaller): MaybePromise<{ total: number }>;
  /** The read grant, for reads made elsewhere. Errors: 401, 403. */
  grant(principal: Principal, source: Source): MaybePromise<Grant>;
  /** Errors: 403 when the rule denies one of the records. Decisions 3. */
  allReadable(principal: Principal, source: Source, grant: Grant, records: readonly TableRecord[]): MaybePromise<void>;
}

/** The conditions of a request with the read rule's own filter, as one WHERE. */
export function whereOf(filter: ParsedFilter, grant: Grant, alias: string): SqlCondition | null {
  const parts = [filterToSql(filter, alias), grant.kind === "filter" ? filterToSql(grant.filter, alias) : null];
  const present = parts.filter((part) => part !== null);
  return present.length === 0 ? null : join(present, "AND");
}

export function createReads(deps: { door: Door }): Reads {
  const { door } = deps;

  const grant: Reads["grant"] = (principal, { table }) =>
    chain(door.grant(principal, table.model, "read"), (granted) => {
      if (granted.kind === "none") throw denied(principal);
      return granted;
    });

  const allReadable: Reads["allReadable"] = (principal, { table }, granted, records) => {
    if (granted.kind !== "record") return;
    const refuse = (): never => {
      if (principal.kind === "anonymous") throw unauthorized();
      throw forbidden(
        "Access denied to one of the records; a read rule that returns a filter is the way to narrow a list",
      );
    };
    const pending: Promise<boolean>[] = [];
    for (const record of records) {
      const answer = door.coversRead(granted, principal, table.model, record);
      if (answer === false) refuse();
      if (isPromise(answer)) pending.push(answer);
    }
    if (pending.length === 0) return;
    return Promise.all(pending).then((answers) => {
      if (answers.includes(false)) refuse();
    });
  };

  const get: Reads["get"] = (principal, source, id, query) =>
    chain(grant(principal, source), (granted) => {
      const { model, store } = source.table;
      const fields = parseFields(model, query.get("fields"));
      const record = source.file === null ? null : store.get(source.file, id);
      if (record === null) {
        // The rule would have looked at it: who has no credentials learns nothing of what is there.
        if (granted.kind === "record" && principal.kind === "anonymous") throw denied(principal);
        throw notFound(`There is no record "${id}" in ${model.name}`);
      }
      return chain(door.coversRead(granted, principal, model, record), (isAllowed) => {
        if (isAllowed) return pick(record, fields);
        if (granted.kind === "filter") throw notFound(`There is no record "${id}" in ${model.name}`);
        throw denied(principal);
      });
    });

  const list: Reads["list"] = (principal, source, query, caller) =>
    chain(grant(principal, source), (granted) => {
      const request = source.table.listRequest(query);
      return chain(find(source, request, granted, caller), ({ records, total }) => {
        // One record more than asked for tells whether there are more, where no total does.
        const hasMore = total === null ? records.length > request.limit : total > records.length;
        if (records.length > request.limit) records.length = request.limit;
        if (request.paging.mode === "before") records.reverse();
        return chain(allReadable(principal, source, granted, records), () =>
          envelope(request, records, hasMore, total),
        );
      });
    });

  /** Statements of requests that no rule narrows: the same for everybody. */
  const prepared = new WeakMap<ListRequest, PreparedList>();
  const find = (source: Source, request: ListRequest, granted: Grant, caller: ReadCaller | undefined) => {
    const { table, file } = source;
    if (file === null) return { records: [], total: isTotalWanted(request, granted) ? 0 : null };
    if (granted.kind !== "all") return table.store.list(file, prepare(table, request, granted), caller);
    const known = prepared.get(request) ?? prepare(table, request, granted);
    prepared.set(request, known);
    return table.store.list(file, known, caller);
  };

  const count: Reads["count"] = (principal, source, query, caller) =>
    chain(grant(principal, source), async (granted) => {
      const { table, file } = source;
      const filter = parseFilters(table.model, query);
      if (file === null) return { total: 0 };
      const matches = matchesOf(table.model, filter, granted);
      if (granted.kind !== "record") return { total: await table.store.count(file, matches, caller) };
      const records = await firstById(table, file, matches, { limit: RULE_RECORDS_MAX + 1, caller });
      if (records.length > RULE_RECORDS_MAX) throw tooManyToAsk();
      await allReadable(principal, source, granted, records);
      return { total: records.length };
    });

  return { get, list, count, grant, allReadable };
}

/** What a request and the rule's own filter keep. */
export function matchesOf(model: TableModel, filter: ParsedFilter, grant: Grant): Matches {
  const conditions = conditionsOf(filter, grant);
  const index = conditions === null ? null : coveringIndex(model, conditions);
  return { where: whereOf(filter, grant, `${model.sql}.`), index };
}

/** What all has to hold; null where there are alternatives beside. */
function conditionsOf(filter: ParsedFilter, grant: Grant): readonly Condition[] | null {
  if (filter.any.length > 0) return null;
  return grant.kind === "filter" ? [...filter.all, ...grant.filter.all] : filter.all;
}

/** The first `limit` of the matches, by id. */
export async function firstById(
  { model, store }: Table,
  file: DatabaseFile,
  matches: Matches,
  { limit, caller }: { limit: number; caller: ReadCaller | undefined },
): Promise<TableRecord[]> {
  const order = { sort: parseSort(model, null), reverse: false };
  const page = { ...order, behind: null, limit, offset: 0, walk: null, isTotalWanted: false };
  return (await store.list(file, store.prepareList({ matches, ...page }), caller)).records;
}

function prepare({ model, store }: Table, request: ListRequest, grant: Grant): PreparedList {
  const { paging, sort, limit, filter } = request;
  const reverse = paging.mode === "before";
  const isKeyset = paging.mode === "after" || paging.mode === "before";
  const behind = isKeyset ? beyond(sort, paging.values, { reverse }) : null;
  const isTotal = isTotalWanted(request, grant);
  const conditions = conditionsOf(filter, grant);
  const walk = conditions === null ? null : walkOf(model, conditions, sort);
  // Behind a cursor, the index has to be entered where the page begins.
  const isEntered = behind === null || behind.ranges !== null;
  return store.prepareList({
    ...{ matches: matchesOf(model, filter, grant), behind, sort, reverse },
    limit: isTotal || paging.mode === "offset" ? limit : limit + 1,
    offset: paging.mode === "offset" ? paging.offset : 0,
    walk: isEntered ? walk : null,
    isTotalWanted: isTotal,
  });
}

/** Not where a cursor leads on, nor where the rule has to see each record. */
const isTotalWanted = ({ paging }: ListRequest, grant: Grant): boolean =>
  grant.kind !== "record" && paging.mode !== "after" && paging.mode !== "before";

/** Spec: List envelope; decisions 4 for a list with neither page/offset nor after/before. */
function envelope(request: ListRequest, records: TableRecord[], hasMore: boolean, total: number | null): ListResult {
  const { paging, limit, sort, fields } = request;
  const isKeyset = paging.mode === "after" || paging.mode === "before";
  const last = paging.mode === "before" ? records[0] : records.at(-1);
  const cursor = hasMore && last !== undefined ? encodeCursor(sort, last) : null;
  const offset = paging.mode === "offset" ? paging.offset : 0;
  return {
    items: fields === null ? records : records.map((record) => pick(record, fields)),
    total,
    page: isKeyset ? null : Math.floor(offset / limit) + 1,
    perPage: isKeyset ? null : limit,
    hasMore: paging.mode === "offset" ? null : hasMore,
    cursor: paging.mode === "offset" ? null : cursor,
  };
}
