import { isWord, type SqlToken, splitStatements, tokenizeSql, withoutExplain } from "../../kernel/sql/tokens.ts";

/** Range of a script, in characters. */
export interface SqlPlace {
  from: number;
  to: number;
}

/** Statement of a script, with its range. */
export interface SqlStatement extends SqlPlace {
  /** Statement without its trailing semicolon. */
  text: string;
  /** Guess from the first keyword; `EXPLAIN` counts as a read. The server decides for itself. */
  kind: "read" | "write";
  isExplained: boolean;
}

/** Splits a script into statements, as SQLite does. `POST /api/d1/:database` takes one at a time. */
export function sqlStatements(script: string): readonly SqlStatement[] {
  return splitStatements(tokenizeSql(script)).flatMap((tokens) => {
    const [first, last] = [tokens[0], tokens.at(-1)];
    if (first === undefined || last === undefined) return [];
    const isExplained = withoutExplain(tokens) !== tokens;
    const kind = isExplained || isRead(tokens) ? "read" : "write";
    return { text: script.slice(first.start, last.end), from: first.start, to: last.end, kind, isExplained };
  });
}

/**
 * Returns the range of a script where SQLite found the error of a statement: the word its message names, if it occurs once in the
 * statement; null otherwise.
 */
export function sqlErrorPlace(script: string, { from, to }: SqlPlace, message: string): SqlPlace | null {
  const named = /near "(.+)": syntax error|unrecognized token: "(.+)"|: (?:[^\s:]+\.)?([^\s:]+)$/s.exec(message);
  const word = (named?.[1] ?? named?.[2] ?? named?.[3])?.toLowerCase();
  if (word === undefined) return null;
  const [found, ...others] = tokenizeSql(script.slice(from, to)).filter(
    ({ text, start, end }) => text === word || script.slice(from + start, from + end).toLowerCase() === word,
  );
  if (found === undefined || others.length > 0) return null;
  return { from: from + found.start, to: from + found.end };
}

const WRITES = ["insert", "update", "delete", "replace"];

function isRead(tokens: readonly SqlToken[]): boolean {
  const [first] = tokens;
  if (["select", "values", "pragma"].some((word) => isWord(first, word))) return true;
  if (!isWord(first, "with")) return false;
  // The statement itself follows its tables, which are in parentheses. `replace` is a function as well.
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    if (token.text === "(" && token.kind === "other") depth++;
    else if (token.text === ")" && token.kind === "other") depth--;
    else if (depth === 0 && WRITES.some((word) => isWord(token, word)) && tokens[index + 1]?.text !== "(") return false;
  }
  return true;
}
