import { tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { Principal } from "../../../access/principal.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { ReadCaller } from "../../../db/index.ts";
import { NO_FILTER } from "../filters/filter.ts";
import { PAGE_BYTES_MAX } from "../limits.ts";
import type { AggregateValues, Asked } from "../model/requests.ts";
import { type AggregateRequest, parseAggregate, type Term } from "./aggregate-request.ts";
import { aggregateSql } from "./aggregate-sql.ts";
import { matchesOf } from "./matches.ts";
import { notByRecord, type Reads, type Source } from "./reads.ts";

export interface Groups {
  groups: TableRecord[];
}

export interface Aggregating {
  /** Counts, sums and extremes of the records that the caller may read. Errors: 401, 403, 400, 408, 413. [TB410] */
  aggregate(principal: Principal, source: Source, asked: Asked<AggregateValues>, caller?: ReadCaller): Promise<Groups>;
}

export function createAggregating(deps: { reads: Reads }): Aggregating {
  return {
    async aggregate(principal, source, asked, caller) {
      const granted = await deps.reads.grant(principal, source);
      if (granted.kind === "record") throw notByRecord(principal);
      const { table, file } = source;
      const request = parseAggregate(table.model, asked.query());
      const terms = [...request.groups, ...request.selected];
      if (file === null) return { groups: overNothing(request) };
      // The rule's filter decides before the caller's conditions are evaluated.
      const { where } = matchesOf(table.model, request.filter, granted);
      const all = [request.filter, granted.kind === "filter" ? granted.filter : NO_FILTER];
      const conditions = all.flatMap((filter) => [...filter.all, ...filter.any]);
      const { sql, params } = aggregateSql(table.model, where, request, conditions);
      const names = JSON.stringify(terms.map(({ name }) => name));
      const { rows, isCut } = await file.readPage(sql, params, {
        caller,
        page: { bytesMax: PAGE_BYTES_MAX, rowBytes: names.length + terms.length, jsonColumns: [] },
        decode: (values) => groupOf(terms, values),
      });
      if (isCut) throw tooLarge("The groups are larger than 8 MiB; request fewer, or group by another field");
      return { groups: rows };
    },
  };
}

const groupOf = (terms: readonly Term[], values: readonly unknown[]): TableRecord =>
  Object.fromEntries(terms.map((term, place) => [term.name, answered(term, values[place])]));

function answered(term: Term, value: unknown): JsonValue {
  if (value === null || value === undefined) return null;
  const isBoolean = term.kind !== "count" && term.column.type === "boolean";
  // Columns of the other types have text and numbers.
  return isBoolean ? value === 1 : (value as string | number);
}

/** Of an instance that does not exist, like of a table without records. */
const overNothing = ({ groups, selected }: AggregateRequest): TableRecord[] =>
  groups.length > 0 ? [] : [Object.fromEntries(selected.map((term) => [term.name, term.kind === "count" ? 0 : null]))];
