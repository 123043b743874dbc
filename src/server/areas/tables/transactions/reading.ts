import { type AppError, badField } from "../../../../kernel/errors.ts";
import { plainCopy } from "../../../../kernel/json/copy.ts";
import type { AskedRecords, RecordSource } from "../../../../kernel/records/record-query.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { expandedNow, type FindRelated, readableBy } from "../expand/expanded-now.ts";
import { type ParsedFilter, parseFilter, type ReadableTables } from "../filters/filter.ts";
import { parseSort } from "../filters/sort.ts";
import { FILTER_CONDITIONS_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { groupsNow, parseTerms, valuesOf } from "../query/aggregate.ts";
import { matchesOf } from "../query/matches.ts";
import { preparedOf } from "../query/prepared-reads.ts";
import { notByRecord } from "../query/reads.ts";
import type { Table } from "../records/namespaces.ts";
import { ownAddressOf, seenBy, withOwnAddress } from "../records/users-view.ts";
import { denied, type Grant } from "../rules/access.ts";
import type { WriteContext } from "../write/write-context.ts";

/** The reads of one table in a transaction. */
export interface TransactionReads {
  context: WriteContext;
  table: Table;
  /** Returns the right to read another table of the file, or this one. Errors: the transaction is over; a rule has to be awaited. */
  readGrant(table: Table): Grant;
  tableOf(model: TableModel): Table;
  /** Returns the file of a namespace without instances. */
  fileOf(namespace: string): DatabaseFile;
}

/** Returns what the queries of a transaction ask. Errors: those of the HTTP endpoints. */
export function transactionSource({ context, table, readGrant, tableOf, fileOf }: TransactionReads): RecordSource {
  const { tx, principal } = context;
  const seen = seenBy(principal, table);
  const { model } = seen;

  /** Returns the right to filter a table. Errors: 401, 403, also where the rule looks at each record. */
  const grantOf = (asked: Table): Grant => {
    const grant = readGrant(asked);
    if (grant.kind === "none") throw denied(principal);
    if (grant.kind === "record") throw notByRecord(principal);
    return grant;
  };
  /** Returns what the relations of a filter may find in a table, as over HTTP. */
  const readable: ReadableTables = (other) => {
    const grant = readGrant(tableOf(other));
    if (grant.kind === "record") throw notByRecord(principal);
    if (grant.kind === "filter") return grant.filter;
    return grant.kind === "all" ? "all" : "nothing";
  };
  readable.own = ownAddressOf(principal);
  const parsed = (of: TableModel, filter: unknown): ParsedFilter =>
    parseFilter(of, filter, { name: "filter", conditionsMax: FILTER_CONDITIONS_MAX, readable });
  const found = (asked: Table, grant: Grant, { filter, sort, limit, offset }: AskedRecords): TableRecord[] => {
    const isById = sort === null && offset === 0;
    const order = isById ? undefined : { sort: parseSort(asked.model, sort, readable.own), offset };
    const statement = preparedOf(asked).first(parsed(asked.model, filter), grant, limit, order);
    const queries = asked.model.namespace === model.namespace ? tx : fileOf(asked.model.namespace);
    return asked.store.matching(queries, statement).map((record) => withOwnAddress(principal, asked.model, record));
  };
  const find = (asked: AskedRecords): TableRecord[] => found(seen, grantOf(table), asked);
  /** Finds related records. As over HTTP, a table of which nothing may be read is empty. */
  const related: FindRelated = (other, filter, limit) => {
    const asked = tableOf(other);
    const grant = readGrant(asked);
    if (grant.kind === "none") return [];
    if (grant.kind === "record") throw notByRecord(principal);
    return found(seenBy(principal, asked), grant, { filter, sort: null, limit, offset: 0 });
  };

  return {
    find,
    exists: (filter) => find({ filter, sort: null, limit: 1, offset: 0 }).length > 0,
    aggregate(filter, asked) {
      const grant = grantOf(table);
      const request = parseTerms(model, valuesOf(asked), readable.own);
      const { where } = matchesOf(model, parsed(model, filter), grant);
      return groupsNow(model, tx, request, { where, index: null });
    },
    expand: (records, paths) => expandedNow(model, records, paths, readableBy(related)).map(plainCopy),
    mistake: (field, message): AppError => badField(field, "invalid_value", message),
  };
}
