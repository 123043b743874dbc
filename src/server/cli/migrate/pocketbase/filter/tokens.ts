/** A rule that is not one of PocketBase's language, or beyond what is read of it. */
export class FilterError extends Error {
  override readonly name = "FilterError";
}

export type Token =
  | { kind: "identifier"; text: string }
  | { kind: "text"; text: string }
  | { kind: "number"; text: string }
  | { kind: "operator"; text: string }
  | { kind: "join"; text: "&&" | "||" }
  | { kind: "bracket"; text: "(" | ")" }
  | { kind: "comma"; text: "," };

// In this order: the longer sign first.
const KINDS: readonly [kind: Token["kind"] | "space", pattern: RegExp][] = [
  ["space", /\s+|\/\/[^\n]*/y],
  ["join", /&&|\|\|/y],
  ["operator", /\??(?:!=|>=|<=|!~|=|>|<|~)/y],
  ["bracket", /[()]/y],
  ["comma", /,/y],
  ["number", /-?\d+(?:\.\d+)?/y],
  ["text", /'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"/y],
  ["identifier", /[@A-Za-z_#][\w@#.:]*/y],
];

/** Splits a rule into its tokens. Errors: FilterError for what is none. */
export function tokensOf(rule: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < rule.length; ) {
    const found = tokenAt(rule, at);
    if (found === null) throw new FilterError(`${JSON.stringify(rule.slice(at, at + 20))} is not understood`);
    const { kind, text } = found;
    at += text.length;
    if (kind !== "space") tokens.push(tokenOf(kind, text));
  }
  return tokens;
}

function tokenAt(rule: string, at: number): { kind: Token["kind"] | "space"; text: string } | null {
  for (const [kind, pattern] of KINDS) {
    pattern.lastIndex = at;
    const [text] = pattern.exec(rule) ?? [];
    if (text !== undefined) return { kind, text };
  }
  return null;
}

/** Returns the token; a text without its quotes, in which a backslash is for the quote alone. */
function tokenOf(kind: Token["kind"], text: string): Token {
  if (kind !== "text") return { kind, text } as Token; // The patterns say which texts a kind has.
  const [quote = ""] = text;
  return { kind, text: text.slice(1, -1).replaceAll(`\\${quote}`, quote) };
}
