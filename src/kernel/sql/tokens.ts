/** One token of SQL as SQLite's own tokenizer cuts it (its tokenize.c); space and comments are left out. */
export interface SqlToken {
  /**
   * `word`: bare identifiers and keywords. `name`: an identifier in double quotes, brackets or backticks. `string`: text in
   * single quotes, which SQLite also takes for a name where one is wanted. `illegal`: SQLite refuses a text that holds one.
   */
  kind: "word" | "name" | "string" | "number" | "blob" | "variable" | "semicolon" | "other" | "illegal";
  /** Words, names and strings without their quotes and in lower case; everything else as it is written. */
  text: string;
  start: number;
  end: number;
}

type Cut = Pick<SqlToken, "kind" | "end">;

/**
 * Matches space. A vertical tab counts only after another one; a byte order mark is space where a token would begin, else part of a
 * word.
 */
const SPACE = /[ \t\n\f\r][\t-\r ]*|\ufeff/y;
const LINE_COMMENT = /--[^\n]*/y;
/** Everything above ASCII belongs to identifiers. */
const WORD = /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y;
const WORD_CHARACTER = /[\w$\u0080-\uffff]/;
const NUMBER = /0[xX][\da-fA-F][\da-fA-F_]*|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?/y;
const BLOB = /[xX]'(?:[\da-fA-F]{2})*'/y;
const NUMBERED_VARIABLE = /\?\d*/y;
const VARIABLE_ARGUMENT = /\([^\t-\r )]*\)/y;
const OTHER = /!=|[()+*%,&~.|<>=/-]/y;
const CLOSING_QUOTES: Readonly<Record<string, string>> = { "'": "'", '"': '"', "`": "`", "[": "]" };

/** Splits SQL into tokens, in time linear in its length, whatever it holds. */
export function tokenizeSql(sql: string): SqlToken[] {
  const tokens: SqlToken[] = [];
  let start = 0;
  while (start < sql.length) {
    const afterBlank = endOfBlank(sql, start);
    if (afterBlank > start) {
      start = afterBlank;
      continue;
    }
    const { kind, end } = cutToken(sql, start);
    tokens.push({ kind, text: textOf(kind, sql.slice(start, end)), start, end });
    start = end;
  }
  return tokens;
}

function cutToken(sql: string, start: number): Cut {
  const first = sql.charAt(start);
  if (first === ";") return { kind: "semicolon", end: start + 1 };
  const closing = CLOSING_QUOTES[first];
  if (closing !== undefined) return cutQuoted(sql, start, closing);
  if (first === "?") return { kind: "variable", end: endOf(NUMBERED_VARIABLE, sql, start) };
  if ("$@:#".includes(first)) return cutVariable(sql, start);
  if (/[xX]/.test(first) && sql.charAt(start + 1) === "'") {
    const end = endOf(BLOB, sql, start);
    return end === start ? { kind: "illegal", end: start + 1 } : { kind: "blob", end };
  }
  const afterNumber = endOf(NUMBER, sql, start);
  if (afterNumber > start) {
    const isWhole = !WORD_CHARACTER.test(sql.charAt(afterNumber));
    return { kind: isWhole ? "number" : "illegal", end: afterNumber };
  }
  const afterWord = endOf(WORD, sql, start);
  if (afterWord > start) return { kind: "word", end: afterWord };
  const afterOther = endOf(OTHER, sql, start);
  return afterOther > start ? { kind: "other", end: afterOther } : { kind: "illegal", end: start + 1 };
}

/** Returns the end of the space or comment at `start`; `start` where there is none. An open block comment runs to the end. */
function endOfBlank(sql: string, start: number): number {
  const afterSpace = endOf(SPACE, sql, start);
  if (afterSpace > start) return afterSpace;
  // At the very end of the text, these two characters begin no comment.
  if (sql.startsWith("/*", start) && start + 2 < sql.length) {
    const end = sql.indexOf("*/", start + 2);
    return end === -1 ? sql.length : end + 2;
  }
  return endOf(LINE_COMMENT, sql, start);
}

/** Cuts a quoted token. A doubled quote stands for itself, but not in brackets. */
function cutQuoted(sql: string, start: number, closing: string): Cut {
  let end = sql.indexOf(closing, start + 1);
  while (end !== -1 && closing !== "]" && sql.charAt(end + 1) === closing) end = sql.indexOf(closing, end + 2);
  if (end === -1) return { kind: "illegal", end: sql.length };
  return { kind: closing === "'" ? "string" : "name", end: end + 1 };
}

/** Cuts a variable: `:a`, `@a`, `$a`, `#a`, with `::` anywhere and, at the end, anything but space in parentheses: `$a::b(c)`. */
function cutVariable(sql: string, start: number): Cut {
  let end = start + 1;
  let isNamed = false;
  for (; end < sql.length; end++) {
    const character = sql.charAt(end);
    if (WORD_CHARACTER.test(character)) isNamed = true;
    else if (character === ":" && sql.charAt(end + 1) === ":") end++;
    else break;
  }
  if (!isNamed) return { kind: "illegal", end };
  if (sql.charAt(end) !== "(") return { kind: "variable", end };
  const afterArgument = endOf(VARIABLE_ARGUMENT, sql, end);
  return afterArgument === end ? { kind: "illegal", end: end + 1 } : { kind: "variable", end: afterArgument };
}

function textOf(kind: SqlToken["kind"], text: string): string {
  if (kind === "word") return text.toLowerCase();
  if (kind !== "name" && kind !== "string") return text;
  const quote = text.charAt(0);
  const inner = text.slice(1, -1);
  return (quote === "[" ? inner : inner.replaceAll(quote + quote, quote)).toLowerCase();
}

/** Returns where the match at `start` ends; `start` where there is none. */
function endOf(pattern: RegExp, sql: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.test(sql) ? pattern.lastIndex : start;
}

/** Splits a script into statements, without the semicolons between them; empty ones are dropped. */
export function splitStatements(tokens: readonly SqlToken[]): SqlToken[][] {
  const statements: SqlToken[][] = [];
  let statement: SqlToken[] = [];
  for (const token of tokens) {
    const isBetween = token.kind === "semicolon" && (!isTrigger(statement) || isTriggerOver(statement));
    if (!isBetween) {
      statement.push(token);
      continue;
    }
    if (statement.length > 0) statements.push(statement);
    statement = [];
  }
  return statement.length > 0 ? [...statements, statement] : statements;
}

export const isWord = (token: SqlToken | undefined, word: string): boolean =>
  token?.kind === "word" && token.text === word;

/** Returns the statement after EXPLAIN or EXPLAIN QUERY PLAN; the tokens themselves where there is no such word. */
export function withoutExplain(tokens: readonly SqlToken[]): readonly SqlToken[] {
  if (!isWord(tokens[0], "explain")) return tokens;
  const isPlan = isWord(tokens[1], "query") && isWord(tokens[2], "plan");
  return tokens.slice(isPlan ? 3 : 1);
}

function isTrigger(statement: readonly SqlToken[]): boolean {
  const [first, second, third] = withoutExplain(statement);
  if (!isWord(first, "create")) return false;
  const isTemporary = isWord(second, "temp") || isWord(second, "temporary");
  return isWord(isTemporary ? third : second, "trigger");
}

/**
 * Reports whether a trigger is complete. Statements inside it end in semicolons of their own; the trigger itself ends after `;
 * END`.
 */
const isTriggerOver = (statement: readonly SqlToken[]): boolean =>
  isWord(statement.at(-1), "end") && statement.at(-2)?.kind === "semicolon";
