import { type AppError, badRequest, forbidden, notFound, tooLarge, unauthorized } from "../../../../kernel/errors.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { askRule, countRows } from "../../../../kernel/observing/request-trace.ts";
import { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { ListResult } from "../../../config/app/index.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, ReadCaller } from "../../../db/index.ts";
import type { Expanding } from "../expand/expand.ts";
import { parseExpand } from "../expand/paths.ts";
import { isEmpty } from "../filters/filter.ts";
import { parseSort } from "../filters/sort.ts";
import { RULE_RECORDS_MAX } from "../limits.ts";
import type { RuleScope } from "../lookups/calls.ts";
import type { TableModel } from "../model/model.ts";
import type { CountValues, GetValues, ListValues, ReadRequest } from "../model/requests.ts";
import type { Table } from "../records/namespaces.ts";
import { LongRecord } from "../records/store.ts";
import { withOwnAddress } from "../records/users-view.ts";
import { denied, type Grant, type RecordRights, ruleName } from "../rules/access.ts";
import { encodeCursor } from "./cursor.ts";
import { KeptLists, ListText } from "./kept-lists.ts";
import {
  isTotalWanted,
  type ListRequest,
  offsetOf,
  parseFields,
  parseFilters,
  parseListRequest,
  pick,
  shownIn,
} from "./list-query.ts";
import { prepareList } from "./list-sql.ts";
import type { Matches } from "./matches.ts";
import { type Page, pagesOf } from "./pages.ts";
import { preparedOf } from "./prepared-reads.ts";
import { createReadableTables, NO_RELATIONS } from "./readable-tables.ts";
import { findInView } from "./view-reads.ts";

export const tooManyToAsk = (): AppError =>
  badRequest(
    `The read rule checks each record, and more than ${RULE_RECORDS_MAX} match; narrow the filter by id, or return a filter from the rule`,
  );

/**
 * Returns the refusal of a filter, sort or count over records that the rule has to see one by one: it would reveal the contents
 * of hidden ones. [TB112]
 */
export const notByRecord = (principal: Principal): AppError =>
  principal.kind === "anonymous"
    ? unauthorized()
    : forbidden(
        "Access denied: the read rule checks each record, so records cannot be filtered, sorted, searched or counted. A read rule may return a filter instead",
      );

/** Returns the error for a record that the grant does not cover: behind a filter it does not exist for this caller. */
export const unreadable = (principal: Principal, granted: Grant, model: TableModel, id: string): AppError =>
  granted.kind === "filter" ? notFound(`There is no record "${id}" in ${model.name}`) : denied(principal);

const tooLargePage = (): AppError =>
  tooLarge("The records of this page are larger than 8 MiB; request fewer, or use a cursor");

/** Whether the request has no conditions and is ordered by id. */
const isPlain = ({ filter, sort, near }: ListRequest): boolean =>
  isEmpty(filter) && near === null && sort.terms[0]?.field.name === "id";

/** A table and its file; the file is null when the instance does not exist yet. */
export interface Source {
  table: Table;
  file: DatabaseFile | null;
  /** Scope for calling the rules of this request. */
  rules: RuleScope;
}

/** Source of a write, which creates the file if it does not exist. */
export interface WritableSource extends Source {
  file: DatabaseFile;
}

type ReadRights = ReturnType<typeof createReadRights>;

/** Returns the checks of the rights to read a source's records. */
function createReadRights(rights: RecordRights) {
  /** Returns the read grant. Errors: 401, 403. */
  const grant = (principal: Principal, { table, rules }: Source): MaybePromise<Grant> =>
    chain(rights.grant({ principal, rules }, table.model, "read"), (granted) => {
      if (granted.kind === "none") throw denied(principal);
      return granted;
    });

  /** Checks that all records are readable. Errors: 403 when the rule denies one of them. [TB49] */
  const allReadable = (
    principal: Principal,
    { table, rules }: Source,
    granted: Grant,
    records: readonly TableRecord[],
  ): MaybePromise<void> => {
    if (granted.kind !== "record") return;
    const refuse = (): never => {
      if (principal.kind === "anonymous") throw unauthorized();
      throw forbidden(
        "Access denied to one of the records. To list only some records, return a filter from the read rule",
      );
    };
    const pending: Promise<boolean>[] = [];
    const ask = (): boolean => {
      for (const record of records) {
        const answer = rights.coversRead(granted, { principal, rules }, table.model, record);
        if (answer === false) return false;
        if (isPromise(answer)) pending.push(answer);
      }
      return true;
    };
    if (!askRule(ruleName(table.model, "read"), ask, { times: records.length })) refuse();
    if (pending.length === 0) return;
    return Promise.all(pending).then((answers) => {
      if (answers.includes(false)) refuse();
    });
  };

  return { grant, allReadable };
}

export type Reads = ReturnType<typeof createReads>;

export function createReads({ rights, expanding }: { rights: RecordRights; expanding: Expanding }) {
  const { grant, allReadable } = createReadRights(rights);
  /** Turns of lists, which do not wait for long records. */
  const listTurns = new Scheduler();
  /** Reads an open file in the turn of this request among all lists. */
  const inTurn = <T>(file: DatabaseFile, read: () => MaybePromise<T>): MaybePromise<T> =>
    listTurns.soon(() => chain(file.ready(), read));
  const find = createFinding();
  const readableTables = createReadableTables(rights);

  const get = (asked: ReadRequest<GetValues>, source: Source, id: string): MaybePromise<TableRecord> => {
    const { principal } = asked;
    return chain(grant(principal, source), (granted) => {
      const { model } = source.table;
      const query = asked.query();
      const fields = parseFields(model, query.fields);
      const expand = parseExpand(model, query.expand);
      return chain(find(source, id, granted, asked), (record) => {
        countRows(record === null ? 0 : 1);
        if (record === null) {
          // The rule would have seen the record: anonymous callers do not learn whether it exists. [TB53]
          if (granted.kind === "record" && principal.kind === "anonymous") throw denied(principal);
          throw notFound(`There is no record "${id}" in ${model.name}`);
        }
        // Behind a filter, no hidden record is found. [TB118]
        const asker = { principal, rules: source.rules };
        const covers = () => rights.coversRead(granted, asker, model, record);
        const covered = granted.kind === "record" ? askRule(ruleName(model, "read"), covers) : true;
        return chain(covered, (isAllowed) => {
          if (!isAllowed) throw denied(principal);
          const shown = (one: TableRecord) => withOwnAddress(principal, model, pick(one, fields));
          if (expand === null) return shown(record);
          const expanded = listTurns.soon(() => expanding.answers(principal, source, expand, [record], shown, asked));
          return chain(expanded, ([one = record]) => one);
        });
      });
    });
  };

  const { listOf } = createListing(expanding, allReadable, listTurns);
  const list = (asked: ReadRequest<ListValues>, source: Source): MaybePromise<ListResult> =>
    chain(grant(asked.principal, source), (granted) => {
      const query = asked.query();
      return chain(readableTables(asked.principal, source, query), (readable) =>
        listOf(asked, source, { request: parseListRequest(source.table.model, query, readable), granted }),
      );
    });

  const listed = createListed(grant, listOf, readableTables);

  const count = (asked: ReadRequest<CountValues>, source: Source): MaybePromise<{ total: number }> =>
    chain(grant(asked.principal, source), (granted) => {
      const { table, file } = source;
      if (granted.kind === "record") throw notByRecord(asked.principal);
      const query = asked.query();
      return chain(readableTables(asked.principal, source, query), (readable) => {
        const filter = parseFilters(table.model, query, readable);
        if (file === null) return { total: 0 };
        const counted = () => pagesOf(table).count(file, preparedOf(table).count(filter, granted), asked);
        return chain(inTurn(file, counted), (total) => ({ total }));
      });
    });

  return { get, find, list, listed, count, grant, readableTables, inTurn };
}

/** Returns the list of a request, which may be a cached text for requests like it. */
function createListed(
  grant: ReadRights["grant"],
  listOf: ReturnType<typeof createListing>["listOf"],
  readableTables: ReturnType<typeof createReadableTables>,
) {
  const kept = new KeptLists();
  return (asked: ReadRequest<ListValues>, source: Source): MaybePromise<ListResult | ListText> =>
    chain(grant(asked.principal, source), (granted) => {
      const { file, table } = source;
      // In the table of users, callers see different addresses.
      const isForAll = granted.kind === "all" && !table.model.isUsers && table.model.view === null;
      const text = file === null || !isForAll ? undefined : asked.queryText?.();
      file?.assertReadable();
      const known = file === null || text === undefined ? null : kept.find(file, table.model, text);
      if (known instanceof ListText) {
        countRows(known.records);
        return known;
      }
      const query = asked.query();
      return chain(readableTables(asked.principal, source, query), (readable) => {
        const request = parseListRequest(table.model, query, readable);
        const found = listOf(asked, source, { request, granted });
        // Related records change without their table, and are others for another caller.
        const isAlone = request.expand === null && readable === NO_RELATIONS;
        return known === null || !isAlone ? found : chain(found, known);
      });
    });
}

/** Returns a function that finds the record of an id, unless the grant's filter hides it. */
function createFinding() {
  const turns = new Scheduler();
  /** Finds a record. Long ones are decoded one after another, over several turns of the event loop. [TB105] */
  return (
    { table, file }: Source,
    id: string,
    granted: Grant,
    caller: ReadCaller,
  ): MaybePromise<TableRecord | null> => {
    if (file !== null && table.model.view !== null) return findInView(table, file, id, { granted, caller });
    const one = granted.kind === "filter" ? preparedOf(table).one(table.model.id, granted) : null;
    const record = file === null ? null : table.store.read(file, id, one);
    return record instanceof LongRecord ? turns.run(decoded(record)) : record;
  };
}

function* decoded(record: LongRecord): Generator<void, TableRecord> {
  yield;
  return record.decode();
}

/** Returns the lists of a caller with its grant. */
function createListing(expanding: Expanding, allReadable: ReadRights["allReadable"], turns: Scheduler) {
  type Asking = { request: ListRequest; granted: Grant };
  /** Returns a list. Concurrent lists take turns: each of them may take a few milliseconds. [TB106] */
  const listOf = (asked: ReadRequest<ListValues>, source: Source, asking: Asking) =>
    turns.soon(() => chain(source.file?.ready(), () => read(asked, source, asking)));

  const read = (
    asked: ReadRequest<ListValues>,
    source: Source,
    { request, granted }: Asking,
  ): MaybePromise<ListResult> => {
    const { principal } = asked;
    if (granted.kind === "record" && !isPlain(request)) throw notByRecord(principal);
    return chain(find(source, request, granted, asked), ({ records, total, isCut }) => {
      // With `total=false`, the page may be complete, and only the record behind it does not fit.
      if (isCut && request.paging.mode === "offset" && records.length < request.limit) throw tooLargePage();
      // Without a total, one record more than requested shows whether there are more.
      const hasMore =
        isCut || (total === null ? records.length > request.limit : total > offsetOf(request.paging) + records.length);
      if (records.length > request.limit) records.length = request.limit;
      if (request.paging.mode === "before") records.reverse();
      return chain(allReadable(principal, source, granted, records), () => {
        const shown = (record: TableRecord) => withOwnAddress(principal, source.table.model, shownIn(request, record));
        const answer = envelope(request, records, shown, hasMore, total);
        if (request.expand === null) return answer;
        const expanded = expanding.answers(principal, source, request.expand, records, shown, asked);
        return chain(expanded, (items) => ({ ...answer, items }));
      });
    });
  };

  const find = (source: Source, request: ListRequest, granted: Grant, caller: ReadCaller) => {
    const { table, file } = source;
    if (file === null) return { records: [], total: isTotalWanted(request, granted) ? 0 : null, isCut: false };
    return pagesOf(table).list(file, preparedOf(table).list(request, granted), caller);
  };

  return { listOf };
}

/** Returns the first `limit` matches by id; fewer when they are large. */
export async function firstById(
  table: Table,
  file: DatabaseFile,
  matches: Matches,
  { limit, caller }: { limit: number; caller: ReadCaller | undefined },
): Promise<Page> {
  const { model } = table;
  const { columns } = model;
  const query = {
    columns,
    matches,
    behind: null,
    sort: parseSort(model, null),
    near: null,
    reverse: false,
    limit,
    offset: 0,
    offsetMax: 0,
  };
  const made = prepareList(model, { ...query, path: null, isTotalWanted: false });
  return pagesOf(table).list(file, { made, values: [], offset: 0 }, caller);
}

/** Returns the answer of a list. [TB1] [TB2] [TB3] */
function envelope(
  request: ListRequest,
  records: TableRecord[],
  shown: (record: TableRecord) => TableRecord,
  hasMore: boolean,
  total: number | null,
): ListResult {
  const { paging, limit, sort, near, isTotalAsked } = request;
  const isKeyset = paging.mode === "after" || paging.mode === "before";
  const last = paging.mode === "before" ? records[0] : records.at(-1);
  const hasCursor = hasMore && paging.mode !== "offset" && near === null;
  return {
    items: records.map(shown),
    total,
    page: isKeyset ? null : Math.floor(offsetOf(paging) / limit) + 1,
    perPage: isKeyset ? null : limit,
    hasMore: paging.mode === "offset" && isTotalAsked && near === null ? null : hasMore,
    cursor: hasCursor && last !== undefined ? encodeCursor(sort, last) : null,
  };
}
