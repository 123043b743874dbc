/** A piece of PostgreSQL's SQL. `text` of a quoted name or a text is without its quotes; names are in lower case unless quoted. */
export interface Token {
  kind: "name" | "quoted" | "text" | "number" | "sign";
  text: string;
  /** Place of its first character, and of the one behind it. */
  start: number;
  end: number;
}

/** Thrown for SQL that is not understood; the message says what, for the report. */
export class NotUnderstood extends Error {}

const PATTERNS = {
  blank: /(?:\s+|--[^\n]*|\/\*[\s\S]*?\*\/)+/y,
  dollar: /\$([A-Za-z_]\w*)?\$/y,
  escaped: /[eE]'((?:[^'\\]|''|\\[\s\S])*)'/y,
  text: /'((?:[^']|'')*)'/y,
  quoted: /"((?:[^"]|"")*)"/y,
  number: /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y,
  name: /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y,
  sign: /::|->>|->|<=|>=|<>|!=|\|\||&&|@>|<@|~~\*|!~~\*|!~~|~~|[-+*/%<>=~!@#&|^?,;:.()[\]]/y,
};

/** Splits SQL into tokens. Errors: NotUnderstood. */
export function tokensOf(sql: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(sql);
  };
  while (at < sql.length) {
    const blank = match(PATTERNS.blank);
    if (blank !== null) {
      at += blank[0].length;
      continue;
    }
    const [found, kind, text] = next(match, sql, at);
    tokens.push({ kind, text, start: at, end: at + found });
    at += found;
  }
  return tokens;
}

function next(
  match: (pattern: RegExp) => RegExpExecArray | null,
  sql: string,
  at: number,
): [length: number, kind: Token["kind"], text: string] {
  const dollar = match(PATTERNS.dollar);
  if (dollar !== null) {
    const end = sql.indexOf(dollar[0], at + dollar[0].length);
    if (end < 0) throw new NotUnderstood("a text that does not end");
    return [end + dollar[0].length - at, "text", sql.slice(at + dollar[0].length, end)];
  }
  const escaped = match(PATTERNS.escaped);
  if (escaped !== null) {
    const [whole, text = ""] = escaped;
    if (/\\[^\\']/.test(text)) throw new NotUnderstood("a text with escapes");
    return [whole.length, "text", text.replaceAll("''", "'").replace(/\\([\\'])/g, "$1")];
  }
  const text = match(PATTERNS.text);
  if (text !== null) return [text[0].length, "text", (text[1] ?? "").replaceAll("''", "'")];
  const quoted = match(PATTERNS.quoted);
  if (quoted !== null) return [quoted[0].length, "quoted", (quoted[1] ?? "").replaceAll('""', '"')];
  for (const kind of ["number", "name", "sign"] as const) {
    const found = match(PATTERNS[kind]);
    if (found !== null) return [found[0].length, kind, kind === "name" ? found[0].toLowerCase() : found[0]];
  }
  throw new NotUnderstood(`the sign ${sql[at]}`);
}

/** Reads tokens one after another. */
export class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#tokens.length;
  }

  peek(ahead = 0): Token | undefined {
    return this.#tokens[this.#at + ahead];
  }

  take(): Token {
    const token = this.#tokens[this.#at];
    if (token === undefined) throw new NotUnderstood("SQL that ends early");
    this.#at += 1;
    return token;
  }

  /** Whether the next tokens are these words or signs. */
  is(...texts: readonly string[]): boolean {
    return texts.every((text, ahead) => {
      const token = this.peek(ahead);
      return token !== undefined && token.text === text && (token.kind === "name" || token.kind === "sign");
    });
  }

  /** Takes these words or signs, if they are next. */
  skip(...texts: readonly string[]): boolean {
    if (!this.is(...texts)) return false;
    this.#at += texts.length;
    return true;
  }

  expect(...texts: readonly string[]): void {
    if (!this.skip(...texts))
      throw new NotUnderstood(`${this.peek()?.text ?? "the end"} in place of ${texts.join(" ")}`);
  }

  /** Takes a name. */
  name(): string {
    const token = this.take();
    if (token.kind !== "name" && token.kind !== "quoted") throw new NotUnderstood(`${token.text} in place of a name`);
    return token.text;
  }

  /** Takes `schema.name`; a name alone is of the schema `public`. */
  place(): Place {
    const first = this.name();
    return this.skip(".") ? { schema: first, name: this.name() } : { schema: "public", name: first };
  }

  /** Takes `(a, b)`; null: it has more than plain names, and is taken as well. */
  names(): string[] | null {
    this.expect("(");
    const names: string[] = [];
    let isPlain = true;
    for (let depth = 0; depth > 0 || !this.is(")"); ) {
      const token = this.take();
      if (token.text === "(" && token.kind === "sign") depth += 1;
      if (token.text === ")" && token.kind === "sign") depth -= 1;
      if (token.kind === "name" || token.kind === "quoted") names.push(token.text);
      else if (token.text !== ",") isPlain = false;
    }
    this.expect(")");
    return isPlain ? names : null;
  }

  /** Takes a group in parentheses. Returns its tokens without them. */
  group(): Token[] {
    this.expect("(");
    const from = this.#at;
    for (let depth = 1; depth > 0; ) {
      const token = this.take();
      if (token.kind !== "sign") continue;
      if (token.text === "(") depth += 1;
      if (token.text === ")") depth -= 1;
    }
    return this.#tokens.slice(from, this.#at - 1);
  }
}

/** A table, type or function by its schema. */
export interface Place {
  schema: string;
  name: string;
}
