import { createHighlighter } from "./highlight.ts";
import { rankedRows } from "./ranked-rows.ts";
import type { PageBounds, QueryRequest, SentStatement } from "./requests.ts";

/** Finds the rows of a statement, as arrays in column order. */
export type Find = (statement: SentStatement) => Iterable<unknown[]>;

export type MarkedQuery = Pick<QueryRequest, "sql" | "params" | "page" | "highlight" | "rank">;

/** Creates a function that returns the rows of a query in its order of relevance, with their marks. */
export function createMarkedRows() {
  const highlightRows = createHighlighter();

  const found = (find: Find, { sql, params, rank }: MarkedQuery): Iterable<unknown[]> =>
    rank === null ? find({ sql, params }) : rankedRows(find, sql, rank);

  /** Marks the rows of a page together, and no more of them than the page can hold. */
  return (find: Find, query: MarkedQuery): Iterable<unknown[]> => {
    const { highlight, page } = query;
    if (highlight === null) return found(find, query);
    const rows: unknown[][] = [];
    let bytes = 0;
    for (const values of found(find, query)) {
      rows.push(values);
      bytes += page === null ? 0 : bytesAsJson(values, page);
      if (page !== null && bytes > page.bytesMax) break;
    }
    const texts = highlightRows(rows, highlight);
    return rows.map((values, place) => [...values, ...(texts[place] ?? [])]);
  };
}

/** Returns the size of a row as JSON, in UTF-8. */
export function bytesAsJson(values: readonly unknown[], page: PageBounds): number {
  let bytes = page.rowBytes;
  for (const [index, value] of values.entries()) {
    const isJson = typeof value !== "string" || page.jsonColumns.includes(index);
    bytes += Buffer.byteLength(isJson ? String(value) : JSON.stringify(value));
  }
  return bytes;
}
