import { existsSync, statSync } from "node:fs";
import { badRequest } from "../../../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { SERVER } from "../../../access/principal.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { MEASURED_RECORDS } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { Sources } from "./sources.ts";

export interface TableSize {
  rows: number;
  /** Estimated bytes of the table's records: of a large table by a sample, without its indexes. */
  bytes: number;
  /** Bytes of the file, which contains all tables of the namespace or instance. */
  fileBytes: number;
}

/**
 * Measures a table, in a fraction of a millisecond. Errors: 404 for an address that does not exist; 400 for an invalid instance
 * id.
 */
export type MeasureTable = (address: TableAddress) => MaybePromise<TableSize>;

export const createMeasuring =
  (sources: Sources): MeasureTable =>
  (address) =>
    chain(sources.forReading(SERVER, address), ({ table: { model }, file }) => {
      if (model.view !== null) throw badRequest(`${model.name} is a view, which stores nothing`);
      if (file === null) return { rows: 0, bytes: 0, fileBytes: 0 };
      const rows = file.rowCount(model.name);
      const bytes = file.tableBytes(model.name) ?? Math.round(rows * averageBytes(model, file));
      return { rows, bytes, fileBytes: existsSync(file.path) ? statSync(file.path).size : 0 };
    });

/**
 * Returns the average bytes of the first and the last records. Their headers contain the lengths, so that long ones take no
 * longer.
 */
function averageBytes({ sql, columns }: TableModel, file: DatabaseFile): number {
  const octets = columns.map((column) => `ifnull(octet_length(${column.sql}), 0)`).join(" + ");
  const some = (order: "ASC" | "DESC") =>
    `SELECT * FROM (SELECT ${octets} AS "bytes" FROM ${sql} ORDER BY "id" ${order} LIMIT ${MEASURED_RECORDS})`;
  const average = `SELECT avg("bytes") AS "bytes" FROM (${some("ASC")} UNION ALL ${some("DESC")})`;
  return file.query<{ bytes: number | null }>(average).get()?.bytes ?? 0;
}
