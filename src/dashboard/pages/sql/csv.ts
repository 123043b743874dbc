import { stringify } from "csv-stringify/browser/esm/sync";
import { CSV_STYLE, formatCell } from "../../../kernel/transfer/csv-cells.ts";
import type { ResultRow } from "./statements.ts";

/** Returns rows as a CSV file, with the names of their columns. Texts that spreadsheets would run as formulas are marked as texts. */
export function csvOf(rows: readonly ResultRow[]): Blob {
  const names = Object.keys(rows[0] ?? {});
  const cell = (value: unknown): string | null =>
    typeof value === "string" || typeof value === "number" ? formatCell(value, undefined) : null;
  const lines = [names.map(cell), ...rows.map((row) => names.map((name) => cell(row[name])))];
  return new Blob([stringify(lines, CSV_STYLE)], { type: "text/csv;charset=utf-8" });
}
