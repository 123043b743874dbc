import { stringify } from "csv-stringify/browser/esm/sync";
import type { Administrator } from "../../../../client/admin/administrator.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { CSV_STYLE, formatCell } from "../../../../kernel/transfer/csv-cells.ts";
import type { TableSchema } from "../../../api/resources.ts";
import { pathOf, type TableAddress } from "../address.ts";
import { parametersOf } from "../filter-model.ts";
import type { Listing } from "../rows.ts";

/** Number of records in a page of an export: the most that a list returns. */
const EXPORT_PAGE_RECORDS = 1_000;

export type ExportFormat = "csv" | "ndjson";

interface Page {
  items: JsonObject[];
  total: number | null;
  hasMore: boolean | null;
  cursor: string | null;
}

/** Exports all records that the grid lists, in its order. `onProgress` receives their number, and the total if known. */
export async function exportRecords(
  server: Administrator,
  { address, schema, listing }: { address: TableAddress; schema: TableSchema; listing: Listing },
  format: ExportFormat,
  options: { signal: AbortSignal; onProgress(count: number, total: number | null): void },
): Promise<{ blob: Blob; count: number }> {
  const { head, textOf } = format === "csv" ? csv(schema) : NDJSON;
  // One blob per page, which browsers may keep on disk.
  const parts: Blob[] = [new Blob([head])];
  let count = 0;
  for await (const { items, total } of pagesOf(server, address, listing, options.signal)) {
    parts.push(new Blob([textOf(items)]));
    count += items.length;
    options.onProgress(count, total);
  }
  const type = format === "csv" ? "text/csv;charset=utf-8" : "application/x-ndjson";
  return { blob: new Blob(parts, { type }), count };
}

const NDJSON = {
  head: "",
  textOf: (records: readonly JsonObject[]) => records.map((record) => `${JSON.stringify(record)}\n`).join(""),
};

function csv({ fields }: TableSchema) {
  const names = Object.keys(fields);
  const rows = (cells: (string | null)[][]): string => stringify(cells, CSV_STYLE);
  return {
    head: rows([names.map((name) => formatCell(name, undefined))]),
    textOf: (records: readonly JsonObject[]) =>
      rows(records.map((record) => names.map((name) => formatCell(record[name], fields[name]?.type)))),
  };
}

async function* pagesOf(
  server: Administrator,
  address: TableAddress,
  { conditions, sort, search }: Listing,
  signal: AbortSignal,
): AsyncGenerator<Pick<Page, "items" | "total">> {
  const common = { ...parametersOf(conditions), limit: EXPORT_PAGE_RECORDS };
  if (search !== "") {
    for (let offset = 0; ; offset += EXPORT_PAGE_RECORDS) {
      const query = { ...common, q: search, offset };
      const { items, total } = await server.request<Page>("GET", `${pathOf(address)}/search`, { query, signal });
      // Highlights are not part of the records.
      yield { items: items.map(({ highlights: _, ...record }) => record), total };
      if (items.length < EXPORT_PAGE_RECORDS) return;
    }
  }
  let after: string | null = null;
  let total: number | null = null;
  for (;;) {
    const query = { ...common, sort, after };
    const page: Page = await server.request<Page>("GET", pathOf(address), { query, signal });
    total ??= page.total;
    yield { items: page.items, total };
    if (page.hasMore !== true || page.cursor === null) return;
    after = page.cursor;
  }
}
