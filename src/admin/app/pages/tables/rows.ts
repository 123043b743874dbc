import { useQueries, useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import type { Administrator } from "../../../../client/admin/administrator.ts";
import { queries } from "../../api/server.ts";
import { SHOWN_ROWS_MAX } from "../../limits.ts";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { keyOf, pathOf, type TableAddress } from "./address.ts";
import { type Conditions, parametersOf } from "./filter-model.ts";
import { MARKS } from "./grid/marked.tsx";

export type Row = {
  readonly id: string;
  /** Of a search: texts with what was found between `MARKS`. */
  readonly highlights?: Readonly<Record<string, string>>;
} & Readonly<Record<string, unknown>>;

/** What the grid shows. */
export interface Listing {
  conditions: Conditions;
  /** `field:asc` or `field:desc`; null: by id. */
  sort: string | null;
  /** Words to search for; empty: a list. */
  search: string;
}

interface Page {
  items: Row[];
  total: number | null;
}

export const PAGE_ROWS = 100;
const HIGHLIGHT = { highlightPre: MARKS.pre, highlightPost: MARKS.post };

/** Below it is everything that changes with the records of a table. */
export const listKey = (address: TableAddress): readonly unknown[] => [...keyOf(address), "rows"];

const pagesKey = (address: TableAddress): readonly unknown[] => [...listKey(address), "pages"];

const pageKey = (address: TableAddress, as: string | null, listing: Listing, page: number): readonly unknown[] => [
  ...pagesKey(address),
  as,
  listing,
  page,
];

function loadPage(
  server: Administrator,
  address: TableAddress,
  { conditions, sort, search }: Listing,
  page: number,
  signal: AbortSignal,
): Promise<Page> {
  const common = { ...parametersOf(conditions), limit: PAGE_ROWS };
  if (search !== "") {
    const query = { ...common, q: search, offset: page * PAGE_ROWS, ...HIGHLIGHT };
    return server.request<Page>("GET", `${pathOf(address)}/search`, { query, signal });
  }
  const query = { ...common, page: page + 1, ...(sort === null ? {} : { sort }) };
  return server.request<Page>("GET", pathOf(address), { query, signal });
}

const NO_ROWS: readonly Row[] = [];
const WHOLE_TABLE: Listing = { conditions: { all: [], any: [] }, sort: null, search: "" };

/** Loads the first rows of a table that is about to be opened. */
export const prefetchRows = (server: Administrator, as: string | null, address: TableAddress): void =>
  void queries.prefetchQuery({
    queryKey: pageKey(address, as, WHOLE_TABLE, 0),
    queryFn: ({ signal }) => loadPage(server, address, WHOLE_TABLE, 0, signal),
  });

/** The rows of a table, loaded a page at a time as they are shown. */
export function useRows(address: TableAddress, listing: Listing, pages: readonly number[]) {
  const server = useServer();
  const as = useViewAs();
  const load = useCallback(
    (page: number, signal: AbortSignal) => loadPage(server, address, listing, page, signal),
    [server, address, listing],
  );
  const keyAt = (page: number) => pageKey(address, as, listing, page);
  const first = useQuery({ queryKey: keyAt(0), queryFn: ({ signal }) => load(0, signal) });
  const others = useQueries({
    queries: pages
      .filter((page) => page > 0)
      .map((page) => ({
        queryKey: keyAt(page),
        queryFn: ({ signal }: { signal: AbortSignal }) => load(page, signal),
      })),
  });
  const total = first.data?.total ?? null;
  const rowAt = (index: number): Row | undefined => {
    const page = Math.floor(index / PAGE_ROWS);
    const data = page === 0 ? first.data : queries.getQueryData<Page>(keyAt(page));
    return data?.items[index % PAGE_ROWS];
  };
  const failed = first.error ?? others.find(({ error }) => error !== null)?.error ?? null;
  return {
    total,
    first: first.data?.items ?? NO_ROWS,
    rowAt,
    error: failed,
    isLoading: first.data === undefined && first.error === null,
    isFetching: first.isFetching || others.some(({ isFetching }) => isFetching),
    count: Math.min(total ?? first.data?.items.length ?? 0, SHOWN_ROWS_MAX),
    refetch: () => void queries.invalidateQueries({ queryKey: listKey(address) }),
  };
}

/** Puts a record that the server has answered into every loaded page. */
export function showRecord(address: TableAddress, record: Row): void {
  queries.setQueriesData<Page>({ queryKey: pagesKey(address) }, (page) =>
    page?.items.some(({ id }) => id === record.id) === true
      ? {
          ...page,
          items: page.items.map((item) => (item.id === record.id ? { ...item, ...record, highlights: {} } : item)),
        }
      : page,
  );
}

/** Loads what is shown again. */
export const reloadRows = (address: TableAddress): void =>
  void queries.invalidateQueries({ queryKey: listKey(address) });
