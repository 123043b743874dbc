/** A table of a namespace, or of one instance of it. */
export interface TableAddress {
  namespace: string;
  /** null: the namespace has no instances. */
  instance: string | null;
  table: string;
}

/** In addresses of pages, for a namespace without instances. */
export const NO_INSTANCE = "-";

/** Parts of a path. */
const segments = (...parts: string[]): string => parts.map(encodeURIComponent).join("/");

/** The path of the table's endpoints. */
export const pathOf = ({ namespace, instance, table }: TableAddress): string =>
  instance === null
    ? `/api/db/${segments(namespace)}/tables/${segments(table)}`
    : `/api/db/${segments(namespace, instance)}/tables/${segments(table)}`;

/** The path of the table's page. */
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
