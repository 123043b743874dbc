/** An index as a collection declares it. */
export interface PbIndex {
  fields: readonly string[];
  isUnique: boolean;
  /** Whether it is for some records alone. */
  isPartial: boolean;
  /** Whether it only leaves out records where the field is empty. */
  isWithoutEmpty: boolean;
}

const INDEX =
  /^\s*CREATE\s+(UNIQUE\s+)?INDEX\s+(?:IF\s+NOT\s+EXISTS\s+)?\S+\s+ON\s+\S+?\s*\((.*?)\)\s*(?:WHERE\s+(.*?))?;?\s*$/is;
const COLUMN = /^[`"[]?(\w+)[`"\]]?(?:\s+(?:ASC|DESC))?$/i;
const NOT_EMPTY = /^[`"[]?(\w+)[`"\]]?\s*(?:!=|<>)\s*(?:''|"")$/;

/** Reads the statement of an index; null: it is about more than plain columns. */
export function indexOf(sql: string): PbIndex | null {
  const [, unique, list, where] = INDEX.exec(sql) ?? [];
  if (list === undefined) return null;
  const fields = list.split(",").map((column) => COLUMN.exec(column.trim())?.[1] ?? null);
  const names = fields.flatMap((name) => name ?? []);
  if (names.length !== fields.length) return null;
  const [, guarded] = NOT_EMPTY.exec(where?.trim() ?? "") ?? [];
  return {
    fields: names,
    isUnique: unique !== undefined,
    isPartial: where !== undefined,
    isWithoutEmpty: names.length === 1 && guarded === names[0],
  };
}
