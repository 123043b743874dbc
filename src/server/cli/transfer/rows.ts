import { stringify } from "csv-stringify/sync";
import { CSV_STYLE } from "../../../kernel/transfer/csv-cells.ts";

/** Formats rows of cells as CSV. */
export const formatRows = (rows: readonly (readonly (string | null)[])[]): string => stringify([...rows], CSV_STYLE);
