import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { FILTERED_ROWS_MAX } from "../../limits.ts";
import type { Codec, Row } from "../../model/codec.ts";
import type { SqlCondition } from "../filter-sql.ts";
import type { FilteredRange, FilteredWalk } from "./filtered-walk.ts";
import { groupedRows } from "./groups.ts";
import { number, type Rows } from "./rows.ts";

/** Puts the values of the request into a statement. */
export type Bind = (statement: SqlCondition) => SqlCondition;

/** A page along an index. null: too many records, too large ones or too large a page; the caller reads it in another way. [TB471] */
export type IndexWalks = (file: DatabaseFile, walk: FilteredWalk, bind: Bind) => TableRecord[] | null;

export function createIndexWalks(codec: Codec, { read, sized }: Rows): IndexWalks {
  const sorted = (file: DatabaseFile, { page, group }: FilteredRange, bind: Bind): TableRecord[] | null =>
    group !== null && number(file, bind(group)) > FILTERED_ROWS_MAX ? null : read(file, bind(page), null);

  /** The page of a range whose equal values are sorted here, while these are few and small. null: as the result. */
  const inGroups = (
    file: DatabaseFile,
    { decided, limit, ties }: FilteredWalk,
    { unsorted, rest }: FilteredRange,
    bind: Bind,
    before: number,
  ): TableRecord[] | null | "many equal" => {
    // Of a range after another one the page takes what is missing: a page of one record may need none of it but its first.
    if (unsorted === null || before >= decided || !ties.next()) return "many equal";
    const { sql, params } = bind(unsorted.statement);
    const wanted = { decided: decided - before, isTooLarge: sized() };
    const found = groupedRows(file.query<Row>(sql).iterate(...params), unsorted, wanted);
    const isCut = found?.isComplete === false && hasRow(file, bind(rest));
    const isVain = found === null || (isCut && found.rows.length >= limit - before);
    ties.ended(isVain);
    if (isVain) return "many equal";
    return isCut ? null : codec.fromRows(found.rows);
  };

  const walked = (file: DatabaseFile, walk: FilteredWalk, bind: Bind): TableRecord[] | null => {
    const { ranges, limit } = walk;
    const records: TableRecord[] = [];
    for (const range of ranges) {
      if (records.length >= limit) break;
      const grouped = inGroups(file, walk, range, bind, records.length);
      if (grouped === null) return null;
      const found = grouped === "many equal" ? sorted(file, range, bind) : grouped;
      if (found === null || found.some((record) => record["id"] === null)) return null;
      records.push(...found);
      if (records.length < limit && hasRow(file, bind(range.rest))) return null;
    }
    if (records.length > limit) records.length = limit;
    return records;
  };

  return (file, walk, bind) => {
    if (!walk.progress.next()) return null;
    const records = walked(file, walk, bind);
    walk.progress.ended(records === null);
    return records;
  };
}

const hasRow = (file: DatabaseFile, { sql, params }: SqlCondition): boolean => file.query(sql).get(...params) !== null;
