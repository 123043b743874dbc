/** Address of a table, in a namespace or in one of its instances. */
export interface TableAddress {
  namespace: string;
  /** Id of the instance; null: the namespace has no instances. */
  instance: string | null;
  table: string;
}

/** Returns the address of a table to which the one at `address` refers: of the same file, or of another namespace. */
export const referredAt = (
  address: TableAddress,
  { namespace, table }: { namespace?: string; table: string },
): TableAddress => (namespace === undefined ? { ...address, table } : { namespace, instance: null, table });

/** Placeholder in page addresses for a namespace without instances. */
export const NO_INSTANCE = "-";

/** Joins the escaped segments of a path. */
const segments = (...parts: string[]): string => parts.map(encodeURIComponent).join("/");

/** Returns the path of the table's endpoints. */
export const pathOf = ({ namespace, instance, table }: TableAddress): string =>
  instance === null
    ? `/api/db/${segments(namespace)}/tables/${segments(table)}`
    : `/api/db/${segments(namespace, instance)}/tables/${segments(table)}`;

/** Returns the path of the table's page. */
export const pageOf = ({ namespace, instance, table }: TableAddress): string =>
  `/tables/${segments(namespace, instance ?? NO_INSTANCE, table)}`;

export const channelOf = ({ namespace, instance, table }: TableAddress): string =>
  instance === null ? `realtime:${namespace}:${table}` : `realtime:${namespace}:${instance}:${table}`;

export const keyOf = ({ namespace, instance, table }: TableAddress): readonly string[] => [
  "table",
  namespace,
  instance ?? NO_INSTANCE,
  table,
];
