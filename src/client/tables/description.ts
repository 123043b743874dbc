import type { JsonValue } from "../../kernel/json/json.ts";
import type { FilterOperator } from "../../server/config/records.ts";

/** A table of one file: of a namespace, or of one instance of it. */
export interface TableAddress {
  readonly namespace: string;
  /** null in a namespace without instances. */
  readonly instance: string | null;
  readonly table: string;
}

export type Condition = readonly [field: string, operator: FilterOperator, value: JsonValue | readonly JsonValue[]];
export type SortKey = readonly [field: string, direction: "asc" | "desc"];

/** What a query asks for. Plain and never changed: queries with equal descriptions are equal. */
export interface QueryDescription extends TableAddress {
  /** All of them must match. */
  readonly conditions: readonly Condition[];
  /** One of them must match, if there are any. */
  readonly or: readonly Condition[];
  /** Equal records, and all records without a sort, are ordered by id. */
  readonly sort: readonly SortKey[];
  /** null: as many as the server gives by default. */
  readonly limit: number | null;
  /** null: all fields. */
  readonly fields: readonly string[] | null;
  readonly expand: readonly string[];
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

/** `/api/db/NAMESPACE[/INSTANCE]`. */
export const databasePath = ({ namespace, instance }: Pick<TableAddress, "namespace" | "instance">): string =>
  `/api/db/${[namespace, instance].flatMap((part) => (part === null ? [] : [encodeURIComponent(part)])).join("/")}`;

export const tablePath = (address: TableAddress): string =>
  `${databasePath(address)}/tables/${encodeURIComponent(address.table)}`;

const json = (value: readonly unknown[]) => (value.length === 0 ? null : JSON.stringify(value));
const commas = (value: readonly string[] | null) => (value === null || value.length === 0 ? null : value.join());

/** `filter` and `orFilter`. */
export const filterParameters = ({ conditions, or }: QueryDescription) => ({
  filter: json(conditions),
  orFilter: json(or),
});

/** The parameters of a list. */
export const listParameters = (query: QueryDescription) => ({
  ...filterParameters(query),
  sort: commas(query.sort.map((key) => key.join(":"))),
  limit: query.limit,
  fields: commas(query.fields),
  expand: commas(query.expand),
});
