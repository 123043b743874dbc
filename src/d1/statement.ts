import { badField } from "../kernel/errors.ts";
import { isWord, type SqlToken, splitStatements, tokenizeSql } from "../kernel/sql-tokens.ts";
import { SQL_MAX_CHARACTERS } from "./limits.ts";

/** One SQL statement that may run: its text alone, and which process runs it. */
export interface Statement {
  sql: string;
  /** `read` runs on a connection that cannot write; `write` in a transaction of its own; `vacuum` outside of one. */
  mode: "read" | "write" | "vacuum";
}

const TRANSACTION_WORDS = new Set(["begin", "commit", "end", "rollback", "savepoint", "release"]);
const READ_WORDS = new Set(["select", "values", "explain", "pragma"]);
const WRITE_WORDS = new Set(["insert", "replace", "update", "delete", "create", "drop", "alter", "reindex", "analyze"]);
/** What can follow the common table expressions of a WITH. */
const AFTER_WITH = new Set(["select", "values", "insert", "replace", "update", "delete"]);

/** Pragmas that only read; with an argument, only those for which it is a question (a table's name, a number of rows). */
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

/** `VIRTUAL TABLE IF NOT EXISTS temp.x`: after CREATE, the schema's name is at most the sixth token. */
const NAME_WITHIN_TOKENS = 6;

const refuse = (message: string): Error => badField("query", "invalid_value", message);

/**
 * Cuts out the one statement of `query` and decides where it runs. Errors: 400 for several statements, none, and those that
 * would leave the database's file or outlive their request. SQLite itself looks at the rest. Decisions 8.
 */
export function parseStatement(query: unknown): Statement {
  if (query === undefined || query === null) throw badField("query", "required", '"query" is required');
  if (typeof query !== "string") throw badField("query", "invalid_type", '"query" must be a string');
  if (query.length > SQL_MAX_CHARACTERS) {
    throw badField("query", "too_long", `"query" must be at most ${SQL_MAX_CHARACTERS} characters`);
  }
  const all = query.includes("\0") ? null : tokenizeSql(query);
  if (all === null) throw refuse('"query" has a quote without its end, or a NUL character');
  const [tokens = [], ...others] = splitStatements(all);
  const [first, ...rest] = tokens;
  const last = tokens.at(-1);
  if (first === undefined || last === undefined) throw refuse('"query" must hold a statement');
  if (others.length > 0) throw refuse('"query" must be one statement, got several');
  refuseEscapes(tokens);
  return { sql: query.slice(first.start, last.end), mode: modeOf(first, rest) };
}

/** Ways out of the file that can stand anywhere in a statement. */
function refuseEscapes(tokens: readonly SqlToken[]): void {
  for (const [index, token] of tokens.entries()) {
    const next = tokens[index + 1];
    // "Tcl variables", $name(anything), are one token for SQLite: what they hide would not be seen here.
    if (token.kind === "variable" && next?.text === "(" && next.start === token.end) {
      throw refuse(`A parameter must not be followed by "(": ${token.text}(`);
    }
    if (token.kind !== "word" && token.kind !== "name") continue;
    if (token.text === "load_extension" && next?.text === "(") throw refuse("load_extension is not allowed");
    if (token.text === "pragma_database_list") throw refuse("pragma_database_list is not allowed");
  }
}

function modeOf(first: SqlToken, rest: readonly SqlToken[]): Statement["mode"] {
  const word = first.kind === "word" ? first.text : "";
  if (TRANSACTION_WORDS.has(word)) {
    throw refuse(`${word.toUpperCase()} is not allowed: each query is a transaction of its own`);
  }
  if (word === "attach" || word === "detach") throw refuse(`${word.toUpperCase()} is not allowed`);
  if (word === "vacuum") {
    if (rest.some((token) => isWord(token, "into"))) throw refuse("VACUUM INTO is not allowed");
    return "vacuum";
  }
  if (word === "pragma") checkPragma(rest);
  if (word === "explain") return checkExplained(rest);
  if (word === "create") checkCreate(rest);
  if (word === "with") return WRITE_WORDS.has(wordAfterWith(rest)) ? "write" : "read";
  if (READ_WORDS.has(word)) return "read";
  // What begins otherwise is no SQL: the reading connection tells its caller so in SQLite's words.
  return WRITE_WORDS.has(word) ? "write" : "read";
}

/** The statement after EXPLAIN is only compiled; the same rules hold for it, so that none has to be trusted. */
function checkExplained(rest: readonly SqlToken[]): "read" {
  const isPlan = isWord(rest[0], "query") && isWord(rest[1], "plan");
  const [first, ...others] = isPlan ? rest.slice(2) : rest;
  if (first !== undefined) modeOf(first, others);
  return "read";
}

function checkPragma(rest: readonly SqlToken[]): void {
  const hasSchema = rest[1]?.text === ".";
  const [name, next] = hasSchema ? rest.slice(2) : rest;
  const pragma = name?.text ?? "";
  if (READ_PRAGMAS_WITH_ARGUMENT.has(pragma)) return;
  if (READ_PRAGMAS.has(pragma) && (next === undefined || next.kind === "semicolon")) return;
  throw refuse(`PRAGMA ${pragma} is not allowed, or not with a value: pragmas that only read are`);
}

/** Temporary tables, views and triggers live in a connection, which other requests share. */
function checkCreate(rest: readonly SqlToken[]): void {
  const isTemporary = isWord(rest[0], "temp") || isWord(rest[0], "temporary");
  const isInTemporarySchema = rest
    .slice(0, NAME_WITHIN_TOKENS)
    .some((token, index) => token.text === "temp" && rest[index + 1]?.text === ".");
  if (isTemporary || isInTemporarySchema) throw refuse("Temporary tables, views and triggers are not allowed");
}

/** The first statement word outside of parentheses. */
function wordAfterWith(rest: readonly SqlToken[]): string {
  let depth = 0;
  for (const token of rest) {
    if (token.text === "(" && token.kind === "other") depth++;
    else if (token.text === ")" && token.kind === "other") depth--;
    else if (depth === 0 && token.kind === "word" && AFTER_WITH.has(token.text)) return token.text;
  }
  return "";
}
