import type { TableModel } from "../model/model.ts";

/** The place of a record in its table. */
export const ROW = '"_platform_row"';

/**
 * The records at the places that `places` finds, in their order: CROSS JOIN keeps it. What it skips or leaves out is not read from the
 * table.
 */
export const recordsAt = (model: TableModel, columns: string, places: string): string =>
  `SELECT ${columns} FROM (${places}) AS "_platform_places" CROSS JOIN ${model.sql} ON ${model.sql}.rowid = "_platform_places".${ROW}`;

/** The limit is part of the SQL text: with a bound limit, SQLite would prepare the statement again for each execution. */
export const limitSql = (limit: number, offset: number): string => `LIMIT ${limit}${offset === 0 ? "" : " OFFSET ?"}`;
