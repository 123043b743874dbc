import type { Database } from "bun:sqlite";
import { readColumns } from "./inspect.ts";

const NAME = /("(?:[^"]|"")+"|`(?:[^`]|``)+`|\[[^\]]+\]|\w+)/.source;

interface Form {
  words: RegExp;
  /** Reports whether the statement has nothing to do. `names`: its names, in its order and in lower case. */
  isDone(sqlite: Database, names: readonly string[]): boolean;
}

const FORMS: readonly Form[] = [
  {
    words: statement(`ALTER TABLE ${NAME} RENAME (?:COLUMN )?${NAME} TO ${NAME}`),
    isDone(sqlite, [table = "", before = "", after = ""]) {
      const columns = columnsOf(sqlite, table);
      return !columns.has(before) && columns.has(after);
    },
  },
  {
    words: statement(`ALTER TABLE ${NAME} DROP (?:COLUMN )?${NAME}`),
    isDone: (sqlite, [table = "", column = ""]) => exists(sqlite, table) && !columnsOf(sqlite, table).has(column),
  },
  {
    words: statement(`ALTER TABLE ${NAME} RENAME TO ${NAME}`),
    isDone: (sqlite, [before = "", after = ""]) => !exists(sqlite, before) && exists(sqlite, after),
  },
  { words: statement(`DROP TABLE ${NAME}`), isDone: (sqlite, [table = ""]) => !exists(sqlite, table) },
];

/**
 * Reports whether a migration only renames and drops what the file has under the new name, or no longer has. The file was made, or
 * changed while it had no records, between the new declaration and the migration. False for all other statements.
 */
export function isDoneAlready(sqlite: Database, up: string): boolean {
  const statements = up.split(";").filter((text) => text.trim() !== "");
  return statements.every((text) => isDone(sqlite, text)) && statements.length > 0;
}

function isDone(sqlite: Database, text: string): boolean {
  for (const { words, isDone } of FORMS) {
    const found = words.exec(text);
    if (found !== null) return isDone(sqlite, found.slice(1).map(nameOf));
  }
  return false;
}

function statement(words: string): RegExp {
  return new RegExp(`^\\s*${words.replaceAll(" ", "\\s+")}\\s*$`, "i");
}

/** Returns a name without quotes, in lower case, as SQLite compares names without case. */
function nameOf(text: string): string {
  const [quote = ""] = text;
  if (quote === "[") return text.slice(1, -1).toLowerCase();
  const isQuoted = quote === '"' || quote === "`";
  return (isQuoted ? text.slice(1, -1).replaceAll(quote + quote, quote) : text).toLowerCase();
}

function exists(sqlite: Database, table: string): boolean {
  return sqlite.query("SELECT 1 FROM sqlite_master WHERE lower(name) = ?").get(table) !== null;
}

function columnsOf(sqlite: Database, table: string): Set<string> {
  return new Set(readColumns(sqlite, table).map(({ name }) => name.toLowerCase()));
}
