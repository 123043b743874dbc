// Queries of a table, as the client and server code write them.

import type { JsonValue } from "../json/json.ts";
import type { Conditions, GroupOf } from "./filter-group.ts";
import type { GeoPoint } from "./geo.ts";

export type TupleOf<Operator extends string> = readonly [
  field: string,
  operator: Operator,
  value: JsonValue | readonly JsonValue[],
];
type SortKey = readonly [field: string, direction: "asc" | "desc"];

/** The terms of a query, as plain data. */
export interface QueryTerms<Operator extends string = string> {
  /** Conditions and groups, all of which must match. */
  readonly conditions: readonly (TupleOf<Operator> | GroupOf<TupleOf<Operator>>)[];
  /** Conditions of which one must match, if there are any. */
  readonly or: readonly TupleOf<Operator>[];
  /** Sort terms. Records that are equal in them are ordered by id. */
  readonly sort: readonly SortKey[];
  /** Order by distance from a point, in place of `sort`. */
  readonly near?: GeoPoint & { readonly field: string };
  /** Number of records; null: the default. */
  readonly limit: number | null;
  /** Names of the fields; null: all. */
  readonly fields: readonly string[] | null;
  readonly expand: readonly string[];
}

/** The terms of a query of all records. */
export const NO_TERMS: QueryTerms<never> = { conditions: [], or: [], sort: [], limit: null, fields: null, expand: [] };

/** A query whose methods return others. `Self`: their type. */
export abstract class FluentQuery<Self, Operator extends string, Terms extends QueryTerms<Operator>> {
  readonly description: Terms;

  constructor(description: Terms) {
    this.description = description;
  }

  /** Returns the query with other terms. */
  protected abstract with(change: Partial<QueryTerms<Operator>>): Self;

  where(...given: TupleOf<Operator> | readonly [filter: Conditions<TupleOf<Operator>>]): Self {
    // A whole filter, or the parts of a condition.
    const added = given.length === 1 ? given[0] : [given];
    return this.with({ conditions: this.description.conditions.concat(added) });
  }

  orWhere(...condition: TupleOf<Operator>): Self {
    return this.with({ or: [...this.description.or, condition] });
  }

  sort(field: string, direction: "asc" | "desc" = "asc"): Self {
    return this.with({ sort: [...this.description.sort, [field, direction]] });
  }

  near(field: string, { lat, lng }: GeoPoint): Self {
    return this.with({ near: { field, lat, lng } });
  }

  limit(count: number): Self {
    return this.with({ limit: count });
  }

  fields(...names: readonly string[]): Self {
    return this.with({ fields: names });
  }

  expand(...paths: readonly string[]): Self {
    return this.with({ expand: [...this.description.expand, ...paths] });
  }
}

const json = (value: readonly unknown[]) => (value.length === 0 ? null : JSON.stringify(value));
const commas = (value: readonly string[] | null) => value?.join() || null;

/** Returns the elements of the filter, which must all match: the conditions, and the alternatives as one group. */
export const elementsOf = <Operator extends string>({ conditions, or }: QueryTerms<Operator>) =>
  or.length === 0 ? conditions : [...conditions, { or: or.map((one) => [one]) }];

/** Returns the parameter `filter`. */
export const filterParameters = (query: QueryTerms) => ({ filter: json(elementsOf(query)) });

/** Returns the parameters of a list. */
export const listParameters = (query: QueryTerms) => ({
  ...filterParameters(query),
  near: query.near && `${query.near.field}:${query.near.lat}:${query.near.lng}`,
  sort: commas(query.sort.map((key) => key.join(":"))),
  limit: query.limit,
  fields: commas(query.fields),
  expand: commas(query.expand),
});
