import { useQueries, useQuery } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import type { Administrator } from "../../../client/admin/administrator.ts";
import { declaredAs, type Field, type FieldType, type TableSchema } from "../../api/resources.ts";
import { PlatformError, queries } from "../../api/server.ts";
import { BATCH_MAX } from "../../limits.ts";
import { deleteSoon as deleteLater, inTurn, useHidden } from "../../parts/undo.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { keyOf, pathOf, type TableAddress } from "./address.ts";
import { type Conditions, parametersOf } from "./filter-model.ts";
import { MARKS } from "./grid/cell-text.tsx";

/** Bound of the grid, as browsers limit the height of an element. A filter reaches the rows beyond. */
const SHOWN_ROWS_MAX = 400_000;

export type Row = {
  readonly id: string;
  /** Matching texts of a search, with matches between `MARKS`. */
  readonly highlights?: Readonly<Record<string, string>>;
} & Readonly<Record<string, unknown>>;

/** Query of the grid. */
export interface Listing {
  conditions: Conditions;
  /** Sort, `field:asc` or `field:desc`; null: by id. */
  sort: string | null;
  /** Search text; empty: a list. */
  search: string;
}

interface Page {
  items: Row[];
  total: number | null;
}

/** Rows of a page, unless the page would exceed the server's response limit. */
const PAGE_ROWS = 100;
/** Divisor of the page size after a response that was too large. */
const FEWER = 4;
const PAYLOAD_TOO_LARGE = 413;
const HIGHLIGHT = { highlightPre: MARKS.pre, highlightPost: MARKS.post };

/** Query key above everything that changes with a table's records. */
export const listKey = (address: TableAddress): readonly unknown[] => [...keyOf(address), "rows"];

const pagesKey = (address: TableAddress): readonly unknown[] => [...listKey(address), "pages"];

/** Part of the rows to load. */
interface Part {
  page: number;
  pageRows: number;
}

const pageKey = (address: TableAddress, as: string | null, listing: Listing, part: Part): readonly unknown[] => [
  ...pagesKey(address),
  as,
  listing,
  part,
];

function loadPage(
  server: Administrator,
  address: TableAddress,
  { conditions, sort, search }: Listing,
  { page, pageRows }: Part,
  signal: AbortSignal,
): Promise<Page> {
  const common = { ...parametersOf(conditions), limit: pageRows };
  if (search !== "") {
    const query = { ...common, q: search, offset: page * pageRows, ...HIGHLIGHT };
    return server.request<Page>("GET", `${pathOf(address)}/search`, { query, signal });
  }
  const query = { ...common, page: page + 1, ...(sort === null ? {} : { sort }) };
  return server.request<Page>("GET", pathOf(address), { query, signal });
}

const NO_ROWS: readonly Row[] = [];
const FIRST: Part = { page: 0, pageRows: PAGE_ROWS };
const WHOLE_TABLE: Listing = { conditions: { all: [], any: [] }, sort: null, search: "" };

/** Prefetches the first rows of a table. */
export const prefetchRows = (server: Administrator, as: string | null, address: TableAddress): void =>
  void queries.prefetchQuery({
    queryKey: pageKey(address, as, WHOLE_TABLE, FIRST),
    queryFn: ({ signal }) => loadPage(server, address, WHOLE_TABLE, FIRST, signal),
  });

/** Returns a table's rows, loaded page by page as they are shown. */
export function useRows(address: TableAddress, listing: Listing, pages: readonly number[]) {
  const server = useServer();
  const as = useViewAs();
  const [pageRows, setPageRows] = useState(PAGE_ROWS);
  const load = useCallback(
    (page: number, signal: AbortSignal) => loadPage(server, address, listing, { page, pageRows }, signal),
    [server, address, listing, pageRows],
  );
  const keyAt = (page: number) => pageKey(address, as, listing, { page, pageRows });
  const first = useQuery({ queryKey: keyAt(0), queryFn: ({ signal }) => load(0, signal) });
  const others = useQueries({
    queries: pages
      .filter((page) => page > 0)
      .map((page) => ({
        queryKey: keyAt(page),
        queryFn: ({ signal }: { signal: AbortSignal }) => load(page, signal),
      })),
  });
  const rowAt = (index: number): Row | undefined => {
    const page = Math.floor(index / pageRows);
    const data = page === 0 ? first.data : queries.getQueryData<Page>(keyAt(page));
    return data?.items[index % pageRows];
  };
  const failed = first.error ?? others.find(({ error }) => error !== null)?.error ?? null;
  const isTooLarge = failed instanceof PlatformError && failed.status === PAYLOAD_TOO_LARGE;
  if (isTooLarge && pageRows > 1) setPageRows(Math.ceil(pageRows / FEWER));
  // While smaller pages are loaded, the grid keeps its scroll position.
  const known = useRef<{ listing: Listing; as: string | null; total: number | null }>({ listing, as, total: null });
  if (known.current.listing !== listing || known.current.as !== as) known.current = { listing, as, total: null };
  const total = first.data?.total ?? known.current.total;
  known.current.total = total;
  return {
    total,
    pageRows,
    first: first.data?.items ?? NO_ROWS,
    /** Loaded pages on the screen. */
    loaded: [first, ...others].flatMap(({ data }) => (data === undefined ? [] : [data.items])),
    rowAt,
    error: failed,
    isLoading: first.data === undefined && first.error === null && total === null,
    isFetching: first.isFetching || others.some(({ isFetching }) => isFetching),
    count: Math.min(total ?? first.data?.items.length ?? 0, SHOWN_ROWS_MAX),
    refetch: () => void queries.invalidateQueries({ queryKey: listKey(address) }),
  };
}

/** Updates a record in every loaded page. */
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

/** Reloads the shown rows. */
export const reloadRows = (address: TableAddress): void =>
  void queries.invalidateQueries({ queryKey: listKey(address) });

/** Bound of the fields of schemaless records that are shown as columns. */
const FOUND_FIELDS_MAX = 50;

const TEXT_CHARACTERS = 80;

/** Returns the common type of the values, for their editors; `json` if they differ. */
function typeOf(values: readonly unknown[]): FieldType {
  const isAll = (type: string): boolean => values.length > 0 && values.every((value) => typeof value === type);
  if (isAll("number")) return "number";
  if (isAll("boolean")) return "boolean";
  if (!isAll("string")) return "json";
  return values.some((value) => String(value).length > TEXT_CHARACTERS || String(value).includes("\n"))
    ? "text"
    : "string";
}

/** Returns the schema of a schemaless table, with the fields found in these records. */
export function withFoundFields(schema: TableSchema, rows: readonly Row[]): TableSchema {
  if (!schema.schemaless) return schema;
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  names.delete("highlights");
  const found = [...names].filter((name) => declaredAs(schema.fields, name) === undefined).slice(0, FOUND_FIELDS_MAX);
  const { id, ...others } = schema.fields;
  const fieldOf = (name: string): Field => {
    const values = rows.map((row) => row[name]).filter((value) => value !== null && value !== undefined);
    return { type: typeOf(values), required: false, unique: false, generated: false };
  };
  return {
    ...schema,
    fields: {
      ...(id === undefined ? {} : { id }),
      ...Object.fromEntries(found.map((name) => [name, fieldOf(name)])),
      ...others,
    },
  };
}

/** Names of records about to be deleted: see `hiddenName`. */
export { useHidden };

/** Returns a record's unique name: records of several tables may share an id, such as a user's. */
export const hiddenName = (address: TableAddress, id: string): string => JSON.stringify([...keyOf(address), id]);

/**
 * Hides records, and deletes them after ten seconds, with the rights of `server`: under View as, the rules of that user apply.
 */
export function deleteSoon(server: Administrator, address: TableAddress, ids: readonly string[]): void {
  const batches = Array.from({ length: Math.ceil(ids.length / BATCH_MAX) }, (_, index) =>
    ids.slice(index * BATCH_MAX, (index + 1) * BATCH_MAX),
  );
  deleteLater({
    names: ids.map((id) => hiddenName(address, id)),
    message: ids.length === 1 ? "One record deleted" : `${ids.length} records deleted`,
    run: (sending) =>
      inTurn(
        sending,
        batches.map((deletes) => () => {
          const options = { ...sending, body: { deletes }, idempotent: true };
          return server.request("POST", `${pathOf(address)}/batch`, options);
        }),
      ),
    done: () => reloadRows(address),
  });
}
