import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import {
  declaredAs,
  type Reference,
  type Resources,
  referenceOf,
  severalOf,
  type TableSchema,
  useResources,
} from "../../api/resources.ts";
import { useRights } from "../../api/session.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { keyOf, pathOf, referredAt, type TableAddress } from "./address.ts";
import { cellText } from "./grid/cell-text.tsx";
import type { Row } from "./rows.ts";

/** Field names that usually title a record, most likely first. */
const TITLES = ["title", "name", "displayName", "label", "subject", "email", "slug", "text"];

/** Returns the field that titles a table's records; null: only the id. */
export function titleOf({ fields, display }: TableSchema): string | null {
  if (display !== undefined) return display;
  const isText = (name: string): boolean => fields[name]?.type === "string" || fields[name]?.type === "text";
  const named = TITLES.find(isText);
  return named ?? Object.keys(fields).find((name) => name !== "id" && isText(name)) ?? null;
}

/** Titles that one request looks up: values of a filter. */
const TITLES_MAX = 1_000;
/** Ids of several references whose titles the grid shows: a cell has room for some. */
export const SHOWN_MAX = 5;

const idsIn = (value: unknown): string[] => {
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.slice(0, SHOWN_MAX).map(String) : [];
};

/** Returns the title of the record to which `value` of the field `column` refers; undefined: unknown. */
export type TitleOf = (column: string, value: string) => string | undefined;

/** Builds the request for the titles of records that are referred to by these values. */
function titlesQuery(
  server: ReturnType<typeof useServer>,
  as: ReturnType<typeof useViewAs>,
  {
    address,
    column,
    title,
    values,
  }: { address: TableAddress; column: string; title: string; values: readonly string[] },
) {
  return {
    queryKey: [...keyOf(address), "titles", as, column, title, values],
    // A title changed meanwhile is updated the next time the table is opened.
    staleTime: 30_000,
    retry: false,
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const filter = JSON.stringify([[column, "in", values]]);
      const query = { filter, fields: [...new Set([column, title])].join(","), limit: values.length, total: false };
      return (await server.request<{ items: Row[] }>("GET", pathOf(address), { query, signal })).items;
    },
  };
}

/** Returns the titles of referenced records, with one request per page and reference. */
export function useTitles(address: TableAddress, schema: TableSchema, pages: readonly (readonly Row[])[]): TitleOf {
  const server = useServer();
  const as = useViewAs();
  const { may } = useRights();
  const namespaces = useResources().data?.namespaces;
  const asked = Object.entries(schema.fields).flatMap(([column, field]) => {
    const references = referenceOf(field) ?? severalOf(field);
    if (references === undefined) return [];
    const at = referredAt(address, references);
    const target = declaredAs(namespaces?.[at.namespace]?.tables, at.table);
    const title = target === undefined ? null : titleOf(target);
    if (target === undefined || title === null) return [];
    if (title === references.column || !may("db", at.namespace, at.table, "read")) return [];
    return pages.flatMap((rows) => {
      const values = [...new Set(rows.flatMap((row) => idsIn(row[column])))].sort().slice(0, TITLES_MAX);
      return values.length === 0 ? [] : [{ column, references, at, title, field: target.fields[title], values }];
    });
  });
  const found = useQueries({
    queries: asked.map(({ references: { column }, at, title, values }) =>
      titlesQuery(server, as, { address: at, column, title, values }),
    ),
  });
  const state = JSON.stringify(
    found.map(({ dataUpdatedAt }, at) => [asked[at]?.column, asked[at]?.values[0], dataUpdatedAt]),
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: `state` says when one of these has changed
  return useMemo(() => {
    const titles = new Map<string, string>();
    for (const [at, { data }] of found.entries()) {
      const one = asked[at];
      if (one === undefined) continue;
      for (const row of data ?? []) {
        const text = cellText(row[one.title], one.field);
        if (text !== "") titles.set(`${one.column} ${String(row[one.references.column])}`, text);
      }
    }
    return (column, value) => titles.get(`${column} ${value}`);
  }, [state]);
}

/** Returns the titles of these records of a referenced table, by the value that refers to them. Unknown ones are left out. */
export function useTitlesOf(
  address: TableAddress,
  references: Reference,
  ids: readonly string[],
): ReadonlyMap<string, string> {
  const server = useServer();
  const as = useViewAs();
  const { may } = useRights();
  const { column } = references;
  const at = referredAt(address, references);
  const target = declaredAs(useResources().data?.namespaces[at.namespace]?.tables, at.table);
  const title = target === undefined ? null : titleOf(target);
  const values = [...ids].sort().slice(0, TITLES_MAX);
  const { data } = useQuery({
    ...titlesQuery(server, as, { address: at, column, title: title ?? column, values }),
    enabled: title !== null && values.length > 0 && may("db", at.namespace, at.table, "read"),
    placeholderData: keepPreviousData,
  });
  const titles = new Map<string, string>();
  for (const row of data ?? []) {
    const text = title === null ? "" : cellText(row[title], target?.fields[title]);
    if (text !== "") titles.set(String(row[column]), text);
  }
  return titles;
}

/** A record by its place, as the audit log names it. */
export interface RecordPlace {
  address: TableAddress;
  id: string;
}

/** Returns the place of a record that `db/NAMESPACE/TABLE/ID` or `db/NAMESPACE/INSTANCE/TABLE/ID` names; null for other targets. */
export function recordPlace(target: string, namespaces: Resources["namespaces"]): RecordPlace | null {
  const [kind, namespace = "", ...rest] = target.split("/");
  const declared = kind === "db" ? declaredAs(namespaces, namespace) : undefined;
  if (declared === undefined) return null;
  const instance = declared.instance ? rest.shift() : null;
  const [table = "", id, ...more] = rest;
  if (instance === undefined || id === undefined || more.length > 0) return null;
  return declaredAs(declared.tables, table) === undefined ? null : { address: { namespace, instance, table }, id };
}

/** Returns a function for the titles of these records, with one request for each table; undefined: unknown, or not readable. */
export function useRecordTitles(places: readonly RecordPlace[]): (place: RecordPlace) => string | undefined {
  const server = useServer();
  const as = useViewAs();
  const { may } = useRights();
  const namespaces = useResources().data?.namespaces ?? {};
  const byTable = Map.groupBy(places, ({ address }) => pathOf(address));
  const asked = [...byTable.values()].flatMap((all) => {
    const [first] = all;
    if (first === undefined) return [];
    const { address } = first;
    const schema = declaredAs(namespaces[address.namespace]?.tables, address.table);
    const title = schema === undefined ? null : titleOf(schema);
    if (schema === undefined || title === null || !may("db", address.namespace, address.table, "read")) return [];
    const values = [...new Set(all.map(({ id }) => id))].sort().slice(0, TITLES_MAX);
    return [{ address, title, field: schema.fields[title], values }];
  });
  const found = useQueries({
    queries: asked.map(({ address, title, values }) =>
      titlesQuery(server, as, { address, column: "id", title, values }),
    ),
  });
  const titles = new Map<string, string>();
  for (const [at, { data }] of found.entries()) {
    const one = asked[at];
    if (one === undefined) continue;
    for (const row of data ?? []) {
      const text = cellText(row[one.title], one.field);
      if (text !== "") titles.set(`${pathOf(one.address)} ${row.id}`, text);
    }
  }
  return ({ address, id }) => titles.get(`${pathOf(address)} ${id}`);
}
