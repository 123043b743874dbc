import type { JsonObject } from "../json/json.ts";
import { type AggregateOptions, aggregateParameters } from "./aggregate-options.ts";
import { filterGap } from "./defined-filter.ts";
import { elementsOf, FluentQuery, listParameters, NO_TERMS, type QueryTerms } from "./query.ts";

// The synchronous query of transactions, rules and hooks.

/** Records that a synchronous query asks for. */
export interface AskedRecords {
  /** Conditions and groups, all of which must match; one group counts as a list of it. */
  readonly filter: unknown;
  /** The order as a parameter; null: by id. */
  readonly sort: string | null;
  readonly limit: number;
  readonly offset: number;
}

/** The parameters of an aggregate, without its filter. */
export type AskedGroups = ReturnType<typeof aggregateParameters>;

/** The records of one table, as a synchronous query asks for them. */
export interface RecordSource {
  find(asked: AskedRecords): readonly JsonObject[];
  exists(filter: unknown): boolean;
  aggregate(filter: unknown, asked: AskedGroups): JsonObject[];
  /** Returns copies of the records with `expand`. `paths`: the parameter. */
  expand(records: readonly JsonObject[], paths: string): readonly JsonObject[];
  /** Returns the error for a mistake of the calling code. */
  mistake(field: string, message: string): Error;
}

/** Records of a list without a limit, and of one with a larger limit. */
const RECORDS_MAX = 1_000;
const PER_PAGE_DEFAULT = 100;

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 1;

/** `RecordQuery` of any table. */
export class SourceQuery extends FluentQuery<SourceQuery, string, QueryTerms> {
  readonly source: RecordSource;

  constructor(source: RecordSource, description: QueryTerms = NO_TERMS) {
    super(description);
    this.source = source;
  }

  protected with(change: Partial<QueryTerms>): SourceQuery {
    return new SourceQuery(this.source, { ...this.description, ...change });
  }

  override where(...given: Parameters<FluentQuery<SourceQuery, string, QueryTerms>["where"]>): SourceQuery {
    const gap = givenGap("where", given);
    if (gap !== null) throw this.source.mistake("filter", gap);
    return super.where(...given);
  }

  override orWhere(...given: Parameters<FluentQuery<SourceQuery, string, QueryTerms>["orWhere"]>): SourceQuery {
    const gap = givenGap("orWhere", given);
    if (gap !== null) throw this.source.mistake("filter", gap);
    return super.orWhere(...given);
  }

  override limit(count: number): SourceQuery {
    this.#checkWhole("limit", count);
    return super.limit(count);
  }

  override near(): SourceQuery {
    throw this.source.mistake("near", "near is for app.db(…) and the client, outside of transactions and rules");
  }

  override fields(): SourceQuery {
    throw this.source.mistake("fields", "fields is for app.db(…) and the client: here, records are whole");
  }

  first(...given: readonly unknown[]): JsonObject | null {
    this.#checkAlone("first", given);
    return this.#items(this.#find(1, 0))[0] ?? null;
  }

  list(...given: readonly unknown[]): { items: JsonObject[]; total: null; hasMore: boolean; cursor: null } {
    this.#checkAlone("list", given);
    const limit = Math.min(this.description.limit ?? RECORDS_MAX, RECORDS_MAX);
    const found = this.#find(limit + 1, 0);
    return { items: this.#items(found.slice(0, limit)), total: null, hasMore: found.length > limit, cursor: null };
  }

  page(number: number, options: { perPage?: number } = {}) {
    this.#checkWhole("page", number);
    const { perPage = this.description.limit ?? PER_PAGE_DEFAULT, ...others } = options;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw this.source.mistake(unknown, `page has no option ${unknown}; it takes perPage`);
    this.#checkWhole("perPage", perPage);
    const size = Math.min(perPage, RECORDS_MAX);
    return {
      items: this.#items(this.#find(size, Math.min((number - 1) * size, Number.MAX_SAFE_INTEGER))),
      total: null,
      page: number,
      perPage: size,
    };
  }

  exists(...given: readonly unknown[]): boolean {
    this.#checkAlone("exists", given);
    return this.source.exists(elementsOf(this.description));
  }

  count(...given: readonly unknown[]): number {
    this.#checkAlone("count", given);
    return Number(this.aggregate({ select: ["count()"] })[0]?.["count()"] ?? 0);
  }

  aggregate(options: AggregateOptions): JsonObject[] {
    const problem = aggregateProblem(options);
    if (problem !== null) throw this.source.mistake(problem.field, problem.message);
    if (options.timezone !== undefined || options.groupBy?.some((name) => name.includes(":"))) {
      const message =
        "groups of days, weeks and so on are for app.db(…) and the client, outside of transactions and rules";
      throw this.source.mistake("groupBy", message);
    }
    return this.source.aggregate(elementsOf(this.description), aggregateParameters(options));
  }

  #find(limit: number, offset: number): readonly JsonObject[] {
    return this.source.find({
      filter: elementsOf(this.description),
      sort: listParameters(this.description).sort,
      limit,
      offset,
    });
  }

  #items(found: readonly JsonObject[]): JsonObject[] {
    const { expand } = listParameters(this.description);
    return expand === null ? [...found] : [...this.source.expand(found, expand)];
  }

  #checkAlone(method: string, given: readonly unknown[]): void {
    if (given.length === 0) return;
    throw this.source.mistake("filter", `${method} of a query takes no argument: write where(…).${method}()`);
  }

  #checkWhole(name: string, value: unknown): void {
    if (isWhole(value)) return;
    throw this.source.mistake(name, `${name} must be a whole number from 1, got ${String(value)}`);
  }
}

/** Describes what is wrong with the arguments of `where`, or of `orWhere`, which takes no filter; null for nothing. */
export function givenGap(method: "where" | "orWhere", given: readonly unknown[]): string | null {
  if (method === "orWhere" && given.length !== 3) return "orWhere takes a field, an operator and a value";
  if (given.length !== 1 && given.length !== 3)
    return `${method} takes a filter, or a field, an operator and a value; got ${given.length} arguments`;
  const gap = filterGap(given.length === 1 ? given[0] : given, "filter");
  return gap === null ? null : `${method}: ${gap.at} ${gap.problem}`;
}

const AGGREGATE_MEMBERS = ["select", "groupBy", "sort", "limit", "timezone"];

/** Describes what is wrong with the options of an aggregate, apart from the names in them; null for nothing. */
export function aggregateProblem(options: unknown): { field: string; message: string } | null {
  const given: object = typeof options === "object" && options !== null ? options : {};
  const unknown = Object.keys(given).find((name) => !AGGREGATE_MEMBERS.includes(name));
  if (unknown !== undefined) {
    const instead = unknown === "filter" || unknown === "orFilter" ? ": write where(…).aggregate(…)" : "";
    return { field: unknown, message: `aggregate has no option ${unknown}${instead}` };
  }
  for (const [name, list] of Object.entries(given)) {
    if (name === "limit" || name === "timezone" || list === undefined || Array.isArray(list)) continue;
    return { field: name, message: `${name} must be a list of names` };
  }
  return "select" in given && given.select !== undefined ? null : { field: "select", message: "select is missing" };
}

/** Says that a former form was called. `called`: the method, whose caller is to be named. */
export type SayFormer = (form: FormerForm, filter: unknown, called: (...given: never[]) => unknown) => void;

/** The forms of 0.2 that are taken until 0.4, and what to write instead. */
export const FORMER_FORMS = {
  "first(filter)": "where(filter).first()",
  "list(filter)": "where(filter).list().items",
  "exists(filter)": "where(filter).exists()",
  "list(options)": "where(filter).sort(field, direction).limit(count).expand(path).list()",
  "count(options)": "where(filter).count()",
  "search(q, options)": "where(filter).sort(field, direction).limit(count).expand(path).search(q)",
  "aggregate(options)": 'where(filter).aggregate({ select: ["count()"] }), which gives the groups',
} as const;
export type FormerForm = keyof typeof FORMER_FORMS;

/** Returns `first`, `list` and `exists` of a table, which take a filter as well until 0.4. `find`: the former way to find. */
export function formerMethods(
  source: RecordSource,
  find: (filter: unknown, limit: number) => readonly JsonObject[],
  say: SayFormer,
) {
  const query = new SourceQuery(source);
  const filterOf = (method: "first" | "list" | "exists", given: readonly unknown[], called: () => unknown): unknown => {
    const [filter] = given;
    // An argument that is missing by mistake would mean every record.
    if (filter === undefined || filter === null) {
      throw source.mistake("filter", `${method}: filter is ${String(filter)}; write ${method}() for every record`);
    }
    say(`${method}(filter)`, filter, called);
    return filter;
  };
  const methods = {
    first(...given: readonly unknown[]): JsonObject | null {
      if (given.length === 0) return query.first();
      return find(filterOf("first", given, methods.first), 1)[0] ?? null;
    },
    list(...given: readonly unknown[]): unknown {
      if (given.length === 0) return query.list();
      const filter = filterOf("list", given, methods.list);
      return [...find(filter, formerLimit(source, given[1]))];
    },
    exists(...given: readonly unknown[]): boolean {
      if (given.length === 0) return query.exists();
      return source.exists(filterOf("exists", given, methods.exists));
    },
  };
  return methods;
}

function formerLimit(source: RecordSource, options: unknown): number {
  const limit = typeof options === "object" && options !== null && "limit" in options ? options.limit : undefined;
  if (limit === undefined) return RECORDS_MAX;
  if (Number.isSafeInteger(limit) && Number(limit) >= 0) return Math.min(Number(limit), RECORDS_MAX);
  throw source.mistake("limit", `limit must be a whole number from 0, got ${String(limit)}`);
}
