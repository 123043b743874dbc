import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { declaredAs, referenceOf, type TableSchema, useResources } from "../../api/resources.ts";
import { useRights } from "../../api/session.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { keyOf, pathOf, type TableAddress } from "./address.ts";
import { cellText } from "./grid/cell-text.tsx";
import { titleOf } from "./record/reference.tsx";
import type { Row } from "./rows.ts";

/** Returns the title of the record to which `value` of the field `column` refers; undefined: unknown. */
export type TitleOf = (column: string, value: string) => string | undefined;

/** Returns the titles of referenced records, with one request per page and reference. */
export function useTitles(address: TableAddress, schema: TableSchema, pages: readonly (readonly Row[])[]): TitleOf {
  const server = useServer();
  const as = useViewAs();
  const { may } = useRights();
  const tables = useResources().data?.namespaces[address.namespace]?.tables;
  const asked = Object.entries(schema.fields).flatMap(([column, field]) => {
    const references = referenceOf(field);
    const target = references === undefined ? undefined : declaredAs(tables, references.table);
    const title = target === undefined ? null : titleOf(target);
    if (references === undefined || target === undefined || title === null) return [];
    if (title === references.column || !may("db", address.namespace, references.table, "read")) return [];
    return pages.flatMap((rows) => {
      const values = [...new Set(rows.flatMap((row) => (typeof row[column] === "string" ? [row[column]] : [])))].sort();
      return values.length === 0 ? [] : [{ column, references, title, field: target.fields[title], values }];
    });
  });
  const found = useQueries({
    queries: asked.map(({ references, title, values }) => ({
      queryKey: [...keyOf({ ...address, table: references.table }), "titles", as, references.column, title, values],
      // A title changed meanwhile is updated the next time the table is opened.
      staleTime: 30_000,
      retry: false,
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const filter = JSON.stringify([[references.column, "in", values]]);
        const fields = [...new Set([references.column, title])].join(",");
        const query = { filter, fields, limit: values.length, total: false };
        const path = pathOf({ ...address, table: references.table });
        return (await server.request<{ items: Row[] }>("GET", path, { query, signal })).items;
      },
    })),
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
