import { AppError } from "../../../../kernel/errors.ts";
import { countRows } from "../../../../kernel/observing/request-trace.ts";
import { isOfType } from "../../../config/sections/tables/view-sql.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, ReadCaller } from "../../../db/index.ts";
import { bound, type SqlCondition } from "../filters/filter-sql.ts";
import type { Codec } from "../model/codec.ts";
import type { Column, TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import { pageBounds } from "../records/store.ts";
import type { Grant } from "../rules/access.ts";
import type { PreparedCount } from "./list-sql.ts";
import { preparedOf, type Shaped, type ShapedList } from "./prepared-reads.ts";

/** Refuses a write to a view. Errors: 405. [TB865] */
export function refuseViewWrites({ view, name }: TableModel): void {
  if (view === null) return;
  const message = `${name} is a view, which is read-only: its records are made of other tables, so change those`;
  throw new AppError(405, message, { headers: { allow: "GET, HEAD, OPTIONS" } });
}

/**
 * Returns lists and counts of a view. Its SQL may take any time, so it runs in a query process, where it can be ended. Nothing is
 * kept: what it finds depends on all tables that it asks, and may depend on the time. [TB861]
 */
export function createViewPages({ model, store: { codec } }: Pick<Table, "model" | "store">) {
  const count = async (file: DatabaseFile, { sql, params }: SqlCondition, caller: ReadCaller | undefined) =>
    Number((await file.read(sql, params, { caller }))[0]?.[0] ?? 0);
  return {
    async list(file: DatabaseFile, { made, values }: ShapedList, caller?: ReadCaller) {
      const { page, columns, total } = made;
      const [{ records, isCut }, counted] = await Promise.all([
        readRecords(file, bound(page, values), { model, codec, columns, caller }),
        // The count of a view always has a statement.
        total === null || total.sql === null ? null : count(file, bound(total.sql, values), caller),
      ]);
      countRows(records.length);
      return { records, total: counted, isCut };
    },
    count: (file: DatabaseFile, { made: { total }, values }: Shaped<PreparedCount>, caller?: ReadCaller) =>
      total === null ? 0 : count(file, bound(total, values), caller),
    isFew: () => false,
    ids: (): Promise<string[]> => Promise.reject(new Error(`${model.name} is a view, and no write asks for its ids`)),
  };
}

/** Returns the record of a view with this id that the grant's filter does not hide; null: there is none. */
export async function findInView(
  table: Table,
  file: DatabaseFile,
  id: string,
  { granted, caller }: { granted: Grant; caller: ReadCaller },
): Promise<TableRecord | null> {
  const { model, store } = table;
  const { sql, params } = preparedOf(table).one(model.id, granted);
  const statement = { sql, params: [id, ...params] };
  const { records } = await readRecords(file, statement, { model, codec: store.codec, columns: model.columns, caller });
  return records[0] ?? null;
}

interface Reading {
  model: TableModel;
  codec: Codec;
  columns: readonly Column[];
  caller: ReadCaller | undefined;
}

async function readRecords(
  file: DatabaseFile,
  { sql, params }: SqlCondition,
  { model, codec, columns, caller }: Reading,
): Promise<{ records: TableRecord[]; isCut: boolean }> {
  const ids = new Set<string>();
  const decode = (row: readonly unknown[]): TableRecord => {
    checkValues(model, columns, row);
    const record = codec.fromValues(row, columns);
    const id = String(record["id"]);
    if (ids.has(id)) throw broken(model, `gives the id ${JSON.stringify(id)} more than once`);
    ids.add(id);
    return record;
  };
  const { rows, isCut } = await file.readPage(sql, params, {
    caller,
    page: pageBounds({ columns, isSchemaless: false }),
    decode,
  });
  return { records: rows, isCut };
}

/** The fault of a config that its check could not see: the log has it, the answer is 500. [TB867] */
const broken = ({ namespace, name }: TableModel, what: string): Error =>
  new Error(`databases.${namespace}.views.${name}.sql ${what}`);

/** Checks what the types of records promise. Errors: a value of another type, or null where none may be. */
function checkValues(model: TableModel, columns: readonly Column[], row: readonly unknown[]): void {
  for (const [place, { name, type, isNullable }] of columns.entries()) {
    const value = row[place] ?? null;
    if (value === null ? isNullable : isOfType(type, value)) continue;
    throw broken(model, value === null ? `gives null as ${name}` : `gives another value than ${type} as ${name}`);
  }
}
