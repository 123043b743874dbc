/** One token of SQL as SQLite's own tokenizer cuts it; whitespace and comments are left out. */
export interface SqlToken {
  /** `word`: bare identifiers and keywords. `name`: an identifier in quotes, brackets or backticks. */
  kind: "word" | "name" | "string" | "number" | "variable" | "semicolon" | "other";
  /** Words in lower case, names without their quotes and in lower case; everything else as it is written. */
  text: string;
  start: number;
  end: number;
}

// One alternative for each kind of token, in the order in which SQLite's tokenizer decides. An open block comment runs to the
// end of the text, as it does there. Everything above ASCII belongs to identifiers.
const TOKEN = new RegExp(
  [
    String.raw`(?<space>[ \t\n\f\r]+|--[^\n]*|\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/)?)`,
    String.raw`(?<string>[xX]?'[^']*(?:''[^']*)*')`,
    String.raw`(?<name>"[^"]*(?:""[^"]*)*"|${"`"}[^${"`"}]*(?:${"``"}[^${"`"}]*)*${"`"}|\[[^\]]*\])`,
    String.raw`(?<variable>\?\d*|[$@:][\w$\u0080-\uffff]+)`,
    String.raw`(?<number>(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?[\w$]*)`,
    String.raw`(?<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    "(?<semicolon>;)",
    "(?<open>[\"'`[])",
    String.raw`(?<other>[\s\S])`,
  ].join("|"),
  "gy",
);

/** Null where a quoted text does not end. */
export function tokenizeSql(sql: string): SqlToken[] | null {
  const tokens: SqlToken[] = [];
  for (const match of sql.matchAll(TOKEN)) {
    const groups = match.groups ?? {};
    if (groups["space"] !== undefined) continue;
    if (groups["open"] !== undefined) return null;
    tokens.push({ ...kindOf(groups, match[0]), start: match.index, end: match.index + match[0].length });
  }
  return tokens;
}

function kindOf(groups: Record<string, string>, text: string): Pick<SqlToken, "kind" | "text"> {
  if (groups["word"] !== undefined) return { kind: "word", text: text.toLowerCase() };
  if (groups["name"] !== undefined) return { kind: "name", text: unquote(text).toLowerCase() };
  if (groups["string"] !== undefined) return { kind: "string", text };
  if (groups["variable"] !== undefined) return { kind: "variable", text };
  if (groups["number"] !== undefined) return { kind: "number", text };
  return { kind: groups["semicolon"] === undefined ? "other" : "semicolon", text };
}

function unquote(text: string): string {
  const quote = text.charAt(0);
  const inner = text.slice(1, -1);
  return quote === "[" ? inner : inner.replaceAll(quote + quote, quote);
}
