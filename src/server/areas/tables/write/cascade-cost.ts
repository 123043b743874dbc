import { AppError } from "../../../../kernel/errors.ts";
import { CASCADE_COST_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";

const BYTES_PER_UNIT = 2048;
/** Deleting from a full-text index costs time per word; a trigram index has one per character. */
const SEARCHED_BYTES_PER_UNIT = { unicode61: 32, porter: 32, trigram: 8 };

/** What happens to a record that refers to a deleted one. */
export type CascadeWork = "delete" | "clear";

/** 409: too much to delete in one request. */
export class CascadeTooLarge extends AppError {
  constructor(message: string) {
    super(409, message);
  }
}

export const tooMuch = (): CascadeTooLarge =>
  new CascadeTooLarge(
    `This would change more records that refer to it than one request may (${CASCADE_COST_MAX}, and fewer where they are ` +
      "long, full-text searched or referred to in turn); delete those first",
  );

/** The cost of this work on a row of the table as an SQL expression. */
export function costSql(model: TableModel, work: CascadeWork): string {
  const bytes = (names: readonly string[]): string =>
    names.map((sql) => `coalesce(octet_length(${sql}), 0)`).join(" + ") || "0";
  const long = model.columns.filter(({ type }) => ["string", "text", "json"].includes(type)).map(({ sql }) => sql);
  const read = `(${bytes(long)}) / ${BYTES_PER_UNIT}`;
  // The row is read and written; its full-text index does not change.
  if (work === "clear") return `(2 + ${read})`;
  const searched = (model.fts?.fields ?? []).flatMap((name) => model.byName.get(name)?.sql ?? []);
  const perUnit = SEARCHED_BYTES_PER_UNIT[model.fts?.tokenize ?? "unicode61"];
  return `(${model.incoming.length > 0 ? 3 : 1} + ${read} + (${bytes(searched)}) / ${perUnit})`;
}
