import type { JsonValue } from "../../kernel/json/json.ts";
import type { GroupOf } from "../../kernel/records/filter-group.ts";
import type { GeoPoint } from "../../kernel/records/geo.ts";
import type { FilterOperator } from "../../server/config/records.ts";

/** Address of a table, in a namespace or in one of its instances. */
export interface TableAddress {
  readonly namespace: string;
  /** Id of the instance; null in a namespace without instances. */
  readonly instance: string | null;
  readonly table: string;
}

export type Condition = readonly [field: string, operator: FilterOperator, value: JsonValue | readonly JsonValue[]];
/** An element of a filter: a condition, or a group of them. */
export type Element = Condition | GroupOf<Condition>;
export type SortKey = readonly [field: string, direction: "asc" | "desc"];

/** Immutable plain data of a query. Queries with equal descriptions are equal. */
export interface QueryDescription extends TableAddress {
  /** Conditions and groups, all of which must match. */
  readonly conditions: readonly Element[];
  /** Conditions of which one must match, if there are any. */
  readonly or: readonly Condition[];
  /** Sort terms. Records that are equal in them are ordered by id. */
  readonly sort: readonly SortKey[];
  /** Order by distance from a point, in place of `sort`. */
  readonly near?: GeoPoint & { readonly field: string };
  /** Number of records; null: the server's default. */
  readonly limit: number | null;
  /** Names of the fields; null: all. */
  readonly fields: readonly string[] | null;
  readonly expand: readonly string[];
  /** Parameters of a search, beside those of a list; absent: it is no search. */
  readonly search?: { readonly q: string; readonly offset?: number } & Readonly<Record<string, string | number>>;
}

export const everything = (address: TableAddress): QueryDescription => ({
  ...address,
  conditions: [],
  or: [],
  sort: [],
  limit: null,
  fields: null,
  expand: [],
});

/** Returns `/api/db/NAMESPACE[/INSTANCE]`. */
export const databasePath = ({ namespace, instance }: Pick<TableAddress, "namespace" | "instance">): string =>
  `/api/db/${[namespace, instance].flatMap((part) => (part === null ? [] : [encodeURIComponent(part)])).join("/")}`;

export const tablePath = (address: TableAddress): string =>
  `${databasePath(address)}/tables/${encodeURIComponent(address.table)}`;

const json = (value: readonly unknown[]) => (value.length === 0 ? null : JSON.stringify(value));
const commas = (value: readonly string[] | null) => (value === null || value.length === 0 ? null : value.join());

/** Returns what must all match: the conditions, and the alternatives as one group. */
export const elementsOf = ({ conditions, or }: QueryDescription): readonly Element[] =>
  or.length === 0 ? conditions : [...conditions, { or: or.map((one) => [one]) }];

/** Returns the parameter `filter`. */
export const filterParameters = (query: QueryDescription) => ({ filter: json(elementsOf(query)) });

/** Returns the parameters of a list. */
export const listParameters = (query: QueryDescription) => ({
  ...filterParameters(query),
  near: query.near && `${query.near.field}:${query.near.lat}:${query.near.lng}`,
  sort: commas(query.sort.map((key) => key.join(":"))),
  limit: query.limit,
  fields: commas(query.fields),
  expand: commas(query.expand),
});
