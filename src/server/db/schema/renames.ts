import { quoteIdentifier as quote } from "../identifiers.ts";
import type { ActualColumn, StoredTable } from "./inspect.ts";
import type { DeclaredTable } from "./types.ts";

/**
 * Returns the columns of a file that are no longer declared, each with the migration that it needs: a rename if there is a new
 * column of the same type, or a drop. Each new column is proposed once.
 */
export function lostColumns(lost: {
  table: DeclaredTable;
  stored: StoredTable | null;
  actual: ReadonlyMap<string, ActualColumn>;
  where: string;
}): string[] {
  const { table, stored, actual, where } = lost;
  const declared = new Set(table.columns.map(({ name }) => name));
  const added = table.columns.filter(({ name }) => !actual.has(name));
  return [...actual.values()]
    .filter(({ name }) => !declared.has(name))
    .map(({ name, type }) => {
      const kind = stored?.columnKinds[name];
      const at = added.findIndex(
        (column) => column.type === type && (kind === undefined || table.columnKinds[column.name] === kind),
      );
      const [successor] = at === -1 ? [] : added.splice(at, 1);
      const alter = `ALTER TABLE ${quote(table.name)}`;
      const drop = `${alter} DROP COLUMN ${quote(name)}`;
      const path = `${where}.${name}: is no longer declared, and its values would be lost`;
      if (successor === undefined) return `${path}; a migration can drop it (${drop})`;
      const rename = `${alter} RENAME COLUMN ${quote(name)} TO ${quote(successor.name)}`;
      return `${path}; if ${successor.name} is its new name, a migration can rename it (${rename}), else one can drop it (${drop})`;
    });
}

/**
 * Returns the tables with records that are no longer declared, like `lostColumns`. `added` are the declared tables that the file
 * does not have.
 */
export function lostTables(lost: {
  names: readonly string[];
  added: readonly DeclaredTable[];
  stored: ReadonlyMap<string, StoredTable>;
  pathOf: (table: string) => string;
}): string[] {
  const successors = [...lost.added];
  return lost.names.map((name) => {
    const before = lost.stored.get(name);
    const at = successors.findIndex((table) => before !== undefined && isAlike(before, table));
    const [successor] = at === -1 ? [] : successors.splice(at, 1);
    const path = `${lost.pathOf(name)}: is no longer declared, and its records would be lost`;
    const drop = `a migration of another table can drop it (DROP TABLE ${quote(name)})`;
    if (successor === undefined) return `${path}; ${drop}`;
    const rename = `ALTER TABLE ${quote(name)} RENAME TO ${quote(successor.name)}`;
    return `${path}; if ${successor.name} is its new name, a migration of ${successor.name} can rename it (${rename}), else ${drop}`;
  });
}

const isAlike = (before: StoredTable, table: DeclaredTable): boolean =>
  before.kind === table.kind && Bun.deepEquals(before.columnKinds, table.columnKinds);
