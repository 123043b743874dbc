import { constants } from "node:sqlite";
import { COMMIT_TABLE } from "../../../db/writer/commit-gate.ts";

/** Pragmas that only read. With an argument only READ_PRAGMAS_WITH_ARGUMENT are allowed, whose argument selects what is read. */
const READ_PRAGMAS = new Set(
  (
    "application_id auto_vacuum cache_size collation_list compile_options data_version encoding foreign_keys freelist_count " +
    "function_list journal_mode module_list page_count page_size pragma_list schema_version synchronous user_version"
  ).split(" "),
);
const READ_PRAGMAS_WITH_ARGUMENT = new Set(
  (
    "foreign_key_check foreign_key_list index_info index_list index_xinfo integrity_check quick_check table_info " +
    "table_list table_xinfo"
  ).split(" "),
);

const READS = new Set([
  constants.SQLITE_SELECT,
  constants.SQLITE_RECURSIVE,
  constants.SQLITE_READ,
  constants.SQLITE_FUNCTION,
  constants.SQLITE_PRAGMA,
]);
const CREATED = new Set([
  constants.SQLITE_CREATE_INDEX,
  constants.SQLITE_CREATE_TABLE,
  constants.SQLITE_CREATE_TRIGGER,
  constants.SQLITE_CREATE_VIEW,
  constants.SQLITE_CREATE_VTABLE,
]);
const WRITES = new Set([
  ...CREATED,
  constants.SQLITE_INSERT,
  constants.SQLITE_UPDATE,
  constants.SQLITE_DELETE,
  constants.SQLITE_DROP_INDEX,
  constants.SQLITE_DROP_TABLE,
  constants.SQLITE_DROP_TRIGGER,
  constants.SQLITE_DROP_VIEW,
  constants.SQLITE_DROP_VTABLE,
  constants.SQLITE_ALTER_TABLE,
  constants.SQLITE_REINDEX,
  constants.SQLITE_ANALYZE,
]);
/** Actions that name a table first, and those that name it second. */
const ON_FIRST = new Set([
  constants.SQLITE_READ,
  constants.SQLITE_INSERT,
  constants.SQLITE_UPDATE,
  constants.SQLITE_DELETE,
  constants.SQLITE_DROP_TABLE,
]);
const ON_SECOND = new Set([
  constants.SQLITE_ALTER_TABLE,
  constants.SQLITE_CREATE_INDEX,
  constants.SQLITE_CREATE_TRIGGER,
]);
const TEMPORARY = new Set([
  constants.SQLITE_CREATE_TEMP_INDEX,
  constants.SQLITE_CREATE_TEMP_TABLE,
  constants.SQLITE_CREATE_TEMP_TRIGGER,
  constants.SQLITE_CREATE_TEMP_VIEW,
  constants.SQLITE_DROP_TEMP_INDEX,
  constants.SQLITE_DROP_TEMP_TABLE,
  constants.SQLITE_DROP_TEMP_TRIGGER,
  constants.SQLITE_DROP_TEMP_VIEW,
]);

type Mode = "own" | "statement" | "vacuum";

/**
 * Authorizer of a connection. SQLite calls it for each action of a statement that it compiles, including what it compiles
 * while a statement runs: a trigger, a view, a table-valued pragma, the content of a full-text index. An action that is on
 * no list is refused. [DQ5]
 */
export type Judge = ReturnType<typeof createJudge>;

/** Names that statements may read, and nothing else. They are in small letters. */
export interface Readable {
  tables: ReadonlySet<string>;
  /** Everything in the file, and every module that can be read like a table. */
  existing: ReadonlySet<string>;
}

/** `readable`: null where statements may do all that stays in the database. */
export function createJudge(readable: Readable | null = null) {
  let mode: Mode = "own";
  let refusal: string | null = null;
  let isWrite = false;
  const refusalOf = (action: number, first: string | null, second: string | null, schema: string | null) => {
    if (readable !== null) return readRefusal(readable, action, first, second);
    if (action === constants.SQLITE_PRAGMA) return pragmaRefusal(first ?? "", second);
    if (action === constants.SQLITE_FUNCTION) return functionRefusal(second);
    if (action === constants.SQLITE_TRANSACTION || action === constants.SQLITE_SAVEPOINT) {
      // VACUUM begins its own transaction.
      return mode === "vacuum" ? null : `${first ?? "This"} is not allowed: each query is a transaction of its own`;
    }
    if (action === constants.SQLITE_ATTACH) {
      // VACUUM attaches its own file without a name; VACUUM INTO attaches one with a name.
      if (mode === "vacuum") return first === "" ? null : "VACUUM INTO is not allowed";
      return "ATTACH is not allowed";
    }
    if (action === constants.SQLITE_DETACH) return "DETACH is not allowed";
    // VACUUM copies every table.
    if (
      mode !== "vacuum" &&
      isServerTable((ON_FIRST.has(action) ? first : ON_SECOND.has(action) ? second : null) ?? "")
    ) {
      return `The table ${COMMIT_TABLE} is the server's own`;
    }
    if (TEMPORARY.has(action) || isCreatedElsewhere(action, schema)) {
      return "Temporary tables, views and triggers are not allowed: other requests share the connection";
    }
    return READS.has(action) || WRITES.has(action) ? null : "The statement is not allowed";
  };
  return {
    /** Callback for the connection's authorizer. */
    authorize(action: number, first: string | null, second: string | null, schema: string | null): number {
      if (mode === "own") return constants.SQLITE_OK;
      if (WRITES.has(action)) isWrite = true;
      const found = refusalOf(action, first, second, schema);
      if (found === null) return constants.SQLITE_OK;
      refusal ??= found;
      return constants.SQLITE_DENY;
    },
    /** Sets the rules for statements compiled from now on. `own`: the process's own statements, which may do everything. */
    begin(next: Mode): void {
      mode = next;
      refusal = null;
      isWrite = false;
    },
    /** Reason of the refusal; null: nothing was refused. */
    get refusal(): string | null {
      return refusal;
    },
    /** Whether the statement changes the database. */
    get isWrite(): boolean {
      return isWrite;
    },
  };
}

/** Names the functions that are read like tables, and read the JSON that they are given. */
const JSON_TABLES = new Set(["json_each", "json_tree"]);

/** Returns why an action is refused where only some tables are read; null if it is allowed. [DQ20] */
function readRefusal(
  { tables, existing }: Readable,
  action: number,
  first: string | null,
  second: string | null,
): string | null {
  const name = (first ?? "").toLowerCase();
  switch (action) {
    case constants.SQLITE_SELECT:
    case constants.SQLITE_RECURSIVE:
      return null;
    case constants.SQLITE_FUNCTION:
      return functionRefusal(second);
    case constants.SQLITE_READ:
      if (tables.has(name) || JSON_TABLES.has(name)) return null;
      // SQLite names what a FROM has, if no column of it is used: the name of a common table expression too.
      if (second === "" && !existing.has(name) && !/^(?:sqlite|pragma)_/.test(name)) return null;
      return `${first} is not a table of the config`;
    default:
      return ONLY_QUERIES;
  }
}

export const ONLY_QUERIES =
  "Only queries of the declared tables are allowed here: records are changed by their own endpoints";

const functionRefusal = (name: string | null): string | null =>
  name?.toLowerCase() === "load_extension" ? "load_extension is not allowed" : null;

const isServerTable = (table: string): boolean => table.toLowerCase() === COMMIT_TABLE;

/** Whether an action creates an object in `temp`: SQLite reports `CREATE TABLE temp.t` as an ordinary creation and an insertion there. */
const isCreatedElsewhere = (action: number, schema: string | null): boolean =>
  schema === "temp" && (action === constants.SQLITE_INSERT || CREATED.has(action));

/**
 * Returns why a pragma is refused; null if it is allowed. A table-valued pragma is authorized when its rows are read.
 * `pragma_database_list` returns file paths.
 */
function pragmaRefusal(name: string, argument: string | null): string | null {
  const pragma = name.toLowerCase();
  if (READ_PRAGMAS_WITH_ARGUMENT.has(pragma) || (READ_PRAGMAS.has(pragma) && argument === null)) return null;
  return `PRAGMA ${pragma} is not allowed, or not with a value: pragmas that only read are`;
}
