// Groups of conditions, and the functions that make them. A group stands in a filter beside its tuples.

type Tuple = readonly [field: unknown, operator: string, value: unknown];

/** A group that matches where one of its filters does; none matches where there are none. */
interface AnyOf<Condition> {
  readonly or: readonly Conditions<Condition>[];
}

/** A group that matches where all of its filters do. */
interface AllOf<Condition> {
  readonly and: readonly Conditions<Condition>[];
}

/** A group that matches exactly where its filter does not, also where a value is null. */
interface Not<Condition> {
  readonly not: Conditions<Condition>;
}

/** Conditions on a record of another table of the namespace. Its values may be fields of the record in which the relation stands. */
interface Related {
  readonly table: string;
  readonly where: readonly unknown[] | object;
}

/** A relation that matches where some record of another table matches. */
interface SomeOf {
  readonly some: Related;
}

/** A relation that matches where no record of another table matches. */
interface NoneOf {
  readonly none: Related;
}

export type GroupOf<Condition> = AnyOf<Condition> | AllOf<Condition> | Not<Condition> | SomeOf | NoneOf;

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

/** The conditions of a relation. A value may be a field of the record in which the relation stands. */
type RelatedConditions = readonly (Tuple | GroupOf<Tuple>)[] | GroupOf<Tuple>;

/**
 * Returns a relation that matches where some record of `table` matches: `some("members", [["teamId", "==", field("teamId")],
 * ["userId", "==", auth.id]])`.
 */
export function some<const Table extends string, const Where extends RelatedConditions>(
  table: Table,
  where: Where,
): { readonly some: { readonly table: Table; readonly where: Where } } {
  return { some: { table, where } };
}

/** Returns a relation that matches where no record of `table` matches. */
export function none<const Table extends string, const Where extends RelatedConditions>(
  table: Table,
  where: Where,
): { readonly none: { readonly table: Table; readonly where: Where } } {
  return { none: { table, where } };
}

/** Returns a field of the record in which a relation stands, for a value inside of it. */
export function field<const Name extends string>(name: Name): { readonly field: Name } {
  return { field: name };
}
