import { badField } from "../kernel/errors.ts";
import { isWord, type SqlToken, splitStatements, tokenizeSql, withoutExplain } from "../kernel/sql-tokens.ts";
import { SQL_MAX_CHARACTERS } from "./limits.ts";

/** One SQL statement that may run: its text alone, and which process runs it. */
export interface Statement {
  sql: string;
  /** `read` runs on a connection that cannot write; `write` in a transaction of its own; `vacuum` outside of one. */
  mode: "read" | "write" | "vacuum";
}

const READ_WORDS = new Set(["select", "values", "pragma"]);
const WRITE_WORDS = new Set(["insert", "replace", "update", "delete", "create", "drop", "alter", "reindex", "analyze"]);
/** Refused like every word that is on no list; these with a reason that is worth telling. */
const TRANSACTION_WORDS = new Set(["begin", "commit", "end", "rollback", "savepoint", "release"]);
/** What can follow the common table expressions of a WITH. */
const AFTER_WITH = new Set(["select", "values", "insert", "replace", "update", "delete"]);
/** What CREATE can be followed by: TEMP and TEMPORARY are not among it. */
const CREATED = new Set(["table", "view", "index", "unique", "trigger", "virtual"]);

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
  if (query.includes("\0")) throw refuse('"query" must not have a NUL character');
  const [tokens = [], ...others] = splitStatements(tokenizeSql(query));
  const [first] = tokens;
  const last = tokens.at(-1);
  if (first === undefined || last === undefined) throw refuse('"query" must hold a statement');
  const illegal = [tokens, ...others].flat().find(({ kind }) => kind === "illegal");
  if (illegal !== undefined) throw refuse(`unrecognized token: "${query.slice(illegal.start, illegal.start + 20)}"`);
  if (others.length > 0) throw refuse('"query" must be one statement, got several');
  const explained = withoutExplain(tokens);
  refuseEscapes(tokens);
  // What is explained is only compiled; the same rules hold for it, so that none has to be trusted.
  const mode = modeOf(explained);
  return { sql: query.slice(first.start, last.end), mode: explained === tokens ? mode : "read" };
}

/** Ways out of the file that can stand anywhere in a statement. Names are names in every kind of quotes. */
function refuseEscapes(tokens: readonly SqlToken[]): void {
  for (const [index, { kind, text }] of tokens.entries()) {
    if (kind !== "word" && kind !== "name" && kind !== "string") continue;
    if (text === "load_extension" && isMark(tokens[index + 1], "(")) throw refuse("load_extension is not allowed");
    if (!text.startsWith("pragma_")) continue;
    // Pragmas are tables too: pragma_database_list tells where files lie, pragma_optimize writes.
    const pragma = text.slice("pragma_".length);
    if (!READ_PRAGMAS.has(pragma) && !READ_PRAGMAS_WITH_ARGUMENT.has(pragma)) throw refuse(`${text} is not allowed`);
  }
}

/** Only what is on a list runs: a word that SQLite knows and this does not would be a way out. */
function modeOf([first, ...rest]: readonly SqlToken[]): Statement["mode"] {
  const word = first?.kind === "word" ? first.text : "";
  if (TRANSACTION_WORDS.has(word)) {
    throw refuse(`${word.toUpperCase()} is not allowed: each query is a transaction of its own`);
  }
  if (word === "attach" || word === "detach") throw refuse(`${word.toUpperCase()} is not allowed`);
  if (word === "vacuum") {
    if (rest.length > 1) throw refuse("VACUUM INTO is not allowed, and VACUUM takes at most a schema's name");
    return "vacuum";
  }
  if (word === "pragma") checkPragma(rest);
  if (word === "create") checkCreate(rest);
  if (word === "with") return WRITE_WORDS.has(wordAfterWith(rest)) ? "write" : "read";
  if (READ_WORDS.has(word)) return "read";
  if (WRITE_WORDS.has(word)) return "write";
  throw refuse(`near "${first?.text ?? ""}": syntax error; this is not a statement that may run`);
}

function checkPragma(rest: readonly SqlToken[]): void {
  const hasSchema = isMark(rest[1], ".");
  const [name, next] = hasSchema ? rest.slice(2) : rest;
  const pragma = name?.text ?? "";
  if (READ_PRAGMAS_WITH_ARGUMENT.has(pragma)) return;
  if (READ_PRAGMAS.has(pragma) && next === undefined) return;
  throw refuse(`PRAGMA ${pragma} is not allowed, or not with a value: pragmas that only read are`);
}

/** Temporary tables, views and triggers live in a connection, which other requests share. */
function checkCreate(rest: readonly SqlToken[]): void {
  const [kind] = rest;
  const isKnown = kind?.kind === "word" && CREATED.has(kind.text);
  let at = isWord(kind, "unique") || isWord(kind, "virtual") ? 2 : 1;
  if (isWord(rest[at], "if") && isWord(rest[at + 1], "not") && isWord(rest[at + 2], "exists")) at += 3;
  const isElsewhere = isMark(rest[at + 1], ".") && rest[at]?.text !== "main";
  if (isKnown && !isElsewhere) return;
  throw refuse(
    "Temporary tables, views and triggers are not allowed, and nothing is created outside of the schema main",
  );
}

/** The first statement word outside of parentheses. */
function wordAfterWith(rest: readonly SqlToken[]): string {
  let depth = 0;
  for (const token of rest) {
    if (isMark(token, "(")) depth++;
    else if (isMark(token, ")")) depth--;
    else if (depth === 0 && token.kind === "word" && AFTER_WITH.has(token.text)) return token.text;
  }
  return "";
}

const isMark = (token: SqlToken | undefined, mark: string): boolean => token?.kind === "other" && token.text === mark;
