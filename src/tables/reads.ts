import type { Principal } from "../access/principal.ts";
import type { ListResult } from "../config/app-access.ts";
import type { TableRecord } from "../config/types.ts";
import type { DatabaseFile } from "../db/index.ts";
import { badRequest, forbidden, notFound, unauthorized } from "../kernel/errors.ts";
import { chain, isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import { type Door, denied, type Grant } from "./access.ts";
import { encodeCursor } from "./cursor.ts";
import type { ParsedFilter } from "./filter.ts";
import { filterToSql, join, type SqlCondition } from "./filter-sql.ts";
import { type ListRequest, type Parameters, parseFields, parseFilters, pick } from "./list-query.ts";
import type { Table } from "./namespaces.ts";
import { beyond, orderBy, parseSort, type Sort } from "./sort.ts";

/** Matches that a count looks at one by one, where the read rule wants to see each. Decisions 3. */
const RULE_COUNT_MAX = 10_000;

/** A table in its file; null where the instance has not been written to yet. */
export interface Source {
  table: Table;
  file: DatabaseFile | null;
}

export interface Reads {
  get(principal: Principal, source: Source, id: string, query: Parameters): MaybePromise<TableRecord>;
  list(principal: Principal, source: Source, query: Parameters): MaybePromise<ListResult>;
  count(principal: Principal, source: Source, query: Parameters): MaybePromise<{ total: number }>;
  /** The read grant, for reads made elsewhere. Errors: 401, 403. */
  grant(principal: Principal, source: Source): MaybePromise<Grant>;
  /** Errors: 403 when the rule denies one of the records. Decisions 3. */
  allReadable(principal: Principal, source: Source, grant: Grant, records: readonly TableRecord[]): MaybePromise<void>;
}

/** The conditions of a request with the read rule's own filter, as one WHERE. */
export function whereOf(filter: ParsedFilter, grant: Grant, alias = ""): SqlCondition | null {
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

  const list: Reads["list"] = (principal, source, query) =>
    chain(grant(principal, source), (granted) => {
      const request = source.table.listRequest(query);
      // Asked together: on a large table the page and the count are two reads in two processes.
      const both = together(page(source, request, granted), totalOf(source, request, granted));
      return chain(both, ([{ records, hasMore }, total]) =>
        chain(allReadable(principal, source, granted, records), () => envelope(request, records, hasMore, total)),
      );
    });

  const count: Reads["count"] = (principal, source, query) =>
    chain(grant(principal, source), async (granted) => {
      const { table, file } = source;
      const filter = parseFilters(table.model, query);
      if (file === null) return { total: 0 };
      if (granted.kind !== "record") return { total: await table.store.count(file, whereOf(filter, granted)) };
      const sort = byId(table);
      const records = await table.store.select(file, {
        where: whereOf(filter, granted),
        orderBy: orderBy(sort, { reverse: false }),
        limit: RULE_COUNT_MAX + 1,
        offset: 0,
        isIndexed: false,
      });
      if (records.length > RULE_COUNT_MAX) {
        throw badRequest(
          `The read rule looks at each record, and more than ${RULE_COUNT_MAX} match; narrow the filter`,
        );
      }
      await allReadable(principal, source, granted, records);
      return { total: records.length };
    });

  return { get, list, count, grant, allReadable };
}

const byId = (table: Table): Sort => parseSort(table.model, null);

function together<A, B>(a: MaybePromise<A>, b: MaybePromise<B>): MaybePromise<[A, B]> {
  return isPromise(a) || isPromise(b) ? Promise.all([a, b]) : [a, b];
}

interface Page {
  records: TableRecord[];
  hasMore: boolean;
}

function page({ table, file }: Source, request: ListRequest, grant: Grant): MaybePromise<Page> {
  if (file === null) return { records: [], hasMore: false };
  const { paging, sort, limit } = request;
  const reverse = paging.mode === "before";
  const filtered = whereOf(request.filter, grant);
  const isKeyset = paging.mode === "after" || paging.mode === "before";
  const behind = isKeyset ? beyond(sort, paging.values, { reverse }) : null;
  const where = behind === null ? filtered : filtered === null ? behind : join([filtered, behind], "AND");
  // One record more than asked for tells whether there are more.
  const selected = table.store.select(file, {
    where,
    orderBy: orderBy(sort, { reverse }),
    limit: limit + 1,
    offset: paging.mode === "offset" ? paging.offset : 0,
    isIndexed: filtered === null && isIndexed(table, sort, { isKeyset }),
  });
  return chain(selected, (found) => {
    const records = found.slice(0, limit);
    if (reverse) records.reverse();
    return { records, hasMore: found.length > limit };
  });
}

/** Whether an index gives this order as it is, so that a page is found without sorting. */
function isIndexed({ model }: Table, sort: Sort, { isKeyset }: { isKeyset: boolean }): boolean {
  const [leading, ...rest] = sort.terms;
  if (leading === undefined || leading.field.isJson) return false;
  if (leading.field.name === "id") return true;
  if (rest.length > 1) return false;
  if (leading.field.column.isUnique && !leading.field.column.isNullable) return true;
  // From a cursor on, SQLite enters such an index at the leading value alone, and may have many equal ones to step over.
  if (isKeyset) return false;
  // Declared indexes end with the id, as every sort does.
  const indexes = model.config.indexes ?? [];
  return (
    leading.direction === "asc" &&
    indexes.some(
      (index) => index.unique !== true && index.fields.length === 1 && index.fields[0] === leading.field.name,
    )
  );
}

/** null where offsets are not asked about, and where the rule has to see each record. */
function totalOf({ table, file }: Source, request: ListRequest, grant: Grant): MaybePromise<number | null> {
  if (grant.kind === "record" || request.paging.mode === "after" || request.paging.mode === "before") return null;
  return file === null ? 0 : table.store.count(file, whereOf(request.filter, grant));
}

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
