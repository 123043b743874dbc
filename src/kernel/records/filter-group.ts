// Groups of conditions, and the functions that make them. A group stands in a filter beside its tuples.

type Tuple = readonly [field: unknown, operator: string, value: unknown];

/** A group that matches where one of its filters does; none matches where there are none. */
export interface AnyOf<Condition> {
  readonly or: readonly Conditions<Condition>[];
}

/** A group that matches where all of its filters do. */
export interface AllOf<Condition> {
  readonly and: readonly Conditions<Condition>[];
}

/** A group that matches exactly where its filter does not, also where a value is null. */
export interface Not<Condition> {
  readonly not: Conditions<Condition>;
}

export type GroupOf<Condition> = AnyOf<Condition> | AllOf<Condition> | Not<Condition>;

/** A whole filter: a list of conditions and groups that must all match, or a single group. */
export type Conditions<Condition> = readonly (Condition | GroupOf<Condition>)[] | GroupOf<Condition>;

/** Returns a group that matches where one of the filters does: `anyOf([["genre", "==", "Comedy"]], [["rating", ">", 8]])`. */
export function anyOf<const Filters extends readonly Conditions<Tuple>[]>(
  ...filters: Filters
): { readonly or: Filters } {
  return { or: filters };
}

/** Returns a group that matches where all of the filters do. */
export function allOf<const Filters extends readonly Conditions<Tuple>[]>(
  ...filters: Filters
): { readonly and: Filters } {
  return { and: filters };
}

/** Returns a group that matches exactly the records that the filter does not match, those with nulls too. */
export function not<const Negated extends Conditions<Tuple>>(filter: Negated): { readonly not: Negated } {
  return { not: filter };
}
