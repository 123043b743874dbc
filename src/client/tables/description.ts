import type { GroupOf } from "../../kernel/records/filter-group.ts";
import { NO_TERMS, type QueryTerms, type TupleOf } from "../../kernel/records/query.ts";
import type { FilterOperator } from "../../server/config/records.ts";

/** Address of a table, in a namespace or in one of its instances. */
export interface TableAddress {
  readonly namespace: string;
  /** Id of the instance; null in a namespace without instances. */
  readonly instance: string | null;
  readonly table: string;
}

export type Condition = TupleOf<FilterOperator>;
/** An element of a filter: a condition, or a group of them. */
export type Element = Condition | GroupOf<Condition>;

/** Immutable plain data of a query. Queries with equal descriptions are equal. */
export interface QueryDescription extends TableAddress, QueryTerms<FilterOperator> {
  /** Parameters of a search, beside those of a list; absent: it is no search. */
  readonly search?: { readonly q: string; readonly offset?: number } & Readonly<Record<string, string | number>>;
}

export const everything = (address: TableAddress): QueryDescription => ({ ...address, ...NO_TERMS });

/** Returns `/api/db/NAMESPACE[/INSTANCE]`. */
export const databasePath = ({ namespace, instance }: Pick<TableAddress, "namespace" | "instance">): string =>
  `/api/db/${[namespace, instance].flatMap((part) => (part === null ? [] : [encodeURIComponent(part)])).join("/")}`;

export const tablePath = (address: TableAddress): string =>
  `${databasePath(address)}/tables/${encodeURIComponent(address.table)}`;
