import { badField } from "../../../../kernel/errors.ts";
import { type AggregateOptions, aggregateParameters } from "../../../../kernel/records/aggregate-options.ts";
import { filterGap } from "../../../../kernel/records/defined-filter.ts";
import {
  FluentQuery,
  filterParameters,
  listParameters,
  NO_TERMS,
  type QueryTerms,
  type TupleOf,
} from "../../../../kernel/records/query.ts";
import { aggregateProblem, givenGap, type SayFormer } from "../../../../kernel/records/record-query.ts";
import type { ListResult, NumberedPage } from "../../../config/app/index.ts";
import type { TableRecord } from "../../../config/types.ts";

/** Parameters of a read, as the client would send them. null and undefined: not sent. */
export type Parameters = Readonly<Record<string, unknown>>;

/** The reads of one table. Errors: 400 for a parameter that the read does not have. */
export interface TableReads {
  list(asked: Parameters): Promise<ListResult>;
  count(asked: Parameters): Promise<number>;
  aggregate(asked: Parameters): Promise<{ groups: TableRecord[] }>;
  search(q: string, asked: Parameters): Promise<ListResult>;
  nearest(id: string, asked: Parameters): Promise<ListResult>;
}

/** `TableQuery` of any table. */
export class AppQuery extends FluentQuery<AppQuery, string, QueryTerms> {
  readonly reads: TableReads;

  constructor(reads: TableReads, description: QueryTerms = NO_TERMS) {
    super(description);
    this.reads = reads;
  }

  protected with(change: Partial<QueryTerms>): AppQuery {
    return new AppQuery(this.reads, { ...this.description, ...change });
  }

  override where(...given: TupleOf<string> | readonly [filter: never]): AppQuery {
    checkGiven("where", given);
    return super.where(...given);
  }

  override orWhere(...given: TupleOf<string>): AppQuery {
    checkGiven("orWhere", given);
    return super.orWhere(...given);
  }

  async first(...given: readonly unknown[]): Promise<TableRecord | null> {
    checkAlone("first", given);
    const { items } = await this.limit(1).list({ total: false });
    return items[0] ?? null;
  }

  async list(paging: Parameters = {}): Promise<ListResult> {
    checkMembers("list", paging, PAGING);
    return this.reads.list({ ...listParameters(this.description), ...paging });
  }

  async page(number: number, options: { perPage?: number } = {}): Promise<NumberedPage<TableRecord>> {
    checkMembers("page", options, ["perPage"]);
    if (number === undefined || number === null) throw badField("page", "required", "page takes a number, from 1");
    const limit = options.perPage ?? this.description.limit;
    const answer = await this.reads.list({ ...listParameters(this.description), limit, page: number });
    // A page that is asked for by its number is answered with both.
    const { items, total, page, perPage } = answer as ListResult & { page: number; perPage: number };
    return { items, total, page, perPage };
  }

  async count(...given: readonly unknown[]): Promise<number> {
    checkAlone("count", given);
    return this.reads.count(filterParameters(this.description));
  }

  async nearest(id: string, ...given: readonly unknown[]): Promise<TableRecord[]> {
    checkAlone("nearest", given);
    return (await this.reads.nearest(id, listParameters(this.description))).items;
  }

  async search(q: string, options: { offset?: number; mode?: string } = {}): Promise<ListResult> {
    checkMembers("search", options, SEARCHING);
    const found = await this.reads.search(q, { ...listParameters(this.description), ...options });
    return { ...found, hasMore: (options.offset ?? 0) + found.items.length < (found.total ?? 0) };
  }

  async aggregate(options: AggregateOptions): Promise<TableRecord[]> {
    const problem = aggregateProblem(options);
    if (problem !== null) throw badField(problem.field, "invalid_value", problem.message);
    const asked = { ...filterParameters(this.description), ...aggregateParameters(options) };
    return (await this.reads.aggregate(asked)).groups;
  }
}

const SEARCHING = ["offset", "mode"];
const PAGING = ["after", "before", "offset", "total"];

/** The former reads of a table, which take filters in their options until 0.4, beside today's. */
export function formerReads(reads: TableReads, say: SayFormer) {
  const query = new AppQuery(reads);
  const methods = {
    async list(options: Parameters = {}): Promise<ListResult> {
      if (isOf(options, PAGING)) return query.list(options);
      checkFilters(options);
      say("list(options)", options["filter"], methods.list);
      return reads.list(options);
    },
    async count(options: Parameters = {}): Promise<number> {
      if (isOf(options, [])) return query.count();
      checkFilters(options);
      say("count(options)", options["filter"], methods.count);
      return reads.count(options);
    },
    async search(q: string, options: Parameters = {}): Promise<ListResult> {
      if (isOf(options, SEARCHING)) return query.search(q, options);
      checkFilters(options);
      say("search(q, options)", options["filter"], methods.search);
      return reads.search(q, options);
    },
    async aggregate(options: Parameters = {}): Promise<unknown> {
      // Lists of names are today's form, which gives the groups, and whose options are checked there.
      if (!isOf(options, []) && ["select", "groupBy", "sort"].some((name) => Array.isArray(options[name])))
        return query.aggregate(options as unknown as AggregateOptions);
      checkFilters(options);
      say("aggregate(options)", options["filter"], methods.aggregate);
      return reads.aggregate(options);
    },
  };
  return methods;
}

/** Whether there are no other options than these. Errors: 400 for what is no options. */
function isOf(options: Parameters, names: readonly string[]): boolean {
  if (typeof options !== "object" || options === null) {
    throw badField("options", "invalid_type", `options must be an object, got ${String(options)}`);
  }
  // A filter in place of the options would not be looked at.
  if (Array.isArray(options)) {
    throw badField("filter", "invalid_value", 'A filter is given to where: where([["year", ">", 1999]]).list()');
  }
  return Object.keys(options).every((name) => names.includes(name));
}

/** Refuses filters that would be ignored, or lose a value. */
function checkFilters(options: Parameters): void {
  for (const name of ["filter", "orFilter"]) {
    if (!Object.hasOwn(options, name)) continue;
    const gap = filterGap(options[name], name);
    if (gap !== null) throw badField(name, "invalid_value", `${gap.at} ${gap.problem}`);
  }
}

function checkGiven(method: "where" | "orWhere", given: readonly unknown[]): void {
  const problem = givenGap(method, given);
  if (problem !== null) throw badField("filter", "invalid_value", problem);
}

function checkAlone(method: string, given: readonly unknown[]): void {
  if (given.length === 0) return;
  throw badField("filter", "invalid_value", `${method} of a query takes no argument: write where(…).${method}()`);
}

function checkMembers(method: string, options: Parameters, names: readonly string[]): void {
  if (isOf(options, names)) return;
  const unknown = Object.keys(options).find((name) => !names.includes(name)) ?? "";
  const message = `${method} of a query has no option ${unknown}; it takes ${names.join(", ")}`;
  throw badField(unknown, "unknown_field", message);
}
