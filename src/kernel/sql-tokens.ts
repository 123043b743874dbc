/** One token of SQL as SQLite's own tokenizer cuts it; whitespace and comments are left out. */
export interface SqlToken {
  /** `word`: bare identifiers, keywords and numbers. `name`: an identifier in quotes, brackets or backticks. */
  kind: "word" | "name" | "string" | "variable" | "semicolon" | "other";
  /** Words in lower case, names without their quotes and in lower case; everything else as it is written. */
  text: string;
  start: number;
  end: number;
}

const SPACE = /[ \t\n\f\r]/;
/** Everything above ASCII belongs to identifiers. Digits are among them: a number is a word that no rule knows. */
const WORD = /[\w$\u0080-\uffff]/;
const VARIABLE = /[?@:$]/;
const CLOSING_QUOTES: Readonly<Record<string, string>> = { "'": "'", '"': '"', "`": "`", "[": "]" };

/** Null where a quoted text does not end. Linear in the text, whatever is in it. */
export function tokenizeSql(sql: string): SqlToken[] | null {
  const tokens: SqlToken[] = [];
  let start = 0;
  while (start < sql.length) {
    const afterBlank = endOfBlank(sql, start);
    if (afterBlank > start) {
      start = afterBlank;
      continue;
    }
    const character = sql.charAt(start);
    const closing = CLOSING_QUOTES[character];
    const end = closing === undefined ? endOfBare(sql, start) : endOfQuoted(sql, start, closing);
    if (end === null) return null;
    tokens.push({ ...classify(character, sql.slice(start, end)), start, end });
    start = end;
  }
  return tokens;
}

function classify(first: string, text: string): Pick<SqlToken, "kind" | "text"> {
  if (first === "'") return { kind: "string", text };
  if (first === "[") return { kind: "name", text: text.slice(1, -1).toLowerCase() };
  if (first === '"' || first === "`") {
    return {
      kind: "name",
      text: text
        .slice(1, -1)
        .replaceAll(first + first, first)
        .toLowerCase(),
    };
  }
  if (VARIABLE.test(first)) return { kind: "variable", text };
  if (WORD.test(first)) return { kind: "word", text: text.toLowerCase() };
  return { kind: first === ";" ? "semicolon" : "other", text };
}

/** After the blank or the comment at `start`; `start` where there is none. An open block comment runs to the end. */
function endOfBlank(sql: string, start: number): number {
  if (SPACE.test(sql.charAt(start))) return start + 1;
  const marker = sql.slice(start, start + 2);
  if (marker !== "--" && marker !== "/*") return start;
  const [close, width] = marker === "--" ? ["\n", 1] : ["*/", 2];
  const end = sql.indexOf(close, start + 2);
  return end === -1 ? sql.length : end + width;
}

/** A doubled quote stands for itself, but not in brackets. */
function endOfQuoted(sql: string, start: number, closing: string): number | null {
  let end = sql.indexOf(closing, start + 1);
  while (end !== -1 && closing !== "]" && sql.charAt(end + 1) === closing) end = sql.indexOf(closing, end + 2);
  return end === -1 ? null : end + 1;
}

function endOfBare(sql: string, start: number): number {
  const first = sql.charAt(start);
  let end = start + 1;
  if (!WORD.test(first) && !VARIABLE.test(first)) return end;
  while (end < sql.length && WORD.test(sql.charAt(end))) end++;
  return end;
}

/** The statements of a script, without the semicolons between them; empty ones count for nothing. */
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

function isTrigger([first, second, third]: readonly SqlToken[]): boolean {
  if (!isWord(first, "create")) return false;
  const isTemporary = isWord(second, "temp") || isWord(second, "temporary");
  return isWord(isTemporary ? third : second, "trigger");
}

/** The statements inside a trigger end in semicolons of their own; the trigger itself ends after `; END`. */
const isTriggerOver = (statement: readonly SqlToken[]): boolean =>
  isWord(statement.at(-1), "end") && statement.at(-2)?.kind === "semicolon";
