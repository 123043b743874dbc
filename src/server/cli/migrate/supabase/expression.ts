import { typeOf } from "./dump.ts";
import { NotUnderstood, type Place, TokenReader, tokensOf } from "./tokens.ts";

/** A SELECT over one table at most. */
export interface Select {
  values: readonly Expression[];
  from: (Place & { alias: string }) | null;
  where: Expression | null;
}

/** An expression of a policy. */
export type Expression =
  | { kind: "column"; path: readonly string[] }
  | { kind: "constant"; value: string | number | boolean | null }
  | { kind: "call"; name: string; values: readonly Expression[] }
  | { kind: "and" | "or"; parts: readonly Expression[] }
  | { kind: "not"; of: Expression }
  | { kind: "comparison"; sign: string; left: Expression; right: Expression }
  | { kind: "any"; sign: string; left: Expression; right: Expression }
  | { kind: "in"; left: Expression; right: Select | readonly Expression[] }
  | { kind: "is"; what: "null" | "true" | "false"; of: Expression }
  | { kind: "exists"; select: Select }
  | { kind: "select"; select: Select }
  | { kind: "cast"; of: Expression; type: string }
  | { kind: "array"; items: readonly Expression[] }
  | { kind: "index"; of: Expression; at: Expression };

const COMPARISONS = new Set(["=", "<>", "!=", "<", "<=", ">", ">="]);
/** Levels of parentheses that are read; more is not understood. */
const DEPTH_MAX = 50;

/** Parses an expression. Errors: NotUnderstood. */
export function parseExpression(sql: string): Expression {
  const parser = new Parser(new TokenReader(tokensOf(sql)));
  return parser.whole();
}

class Parser {
  readonly #reader: TokenReader;
  #depth = 0;

  constructor(reader: TokenReader) {
    this.#reader = reader;
  }

  whole(): Expression {
    const expression = this.#or();
    if (!this.#reader.isAtEnd) throw new NotUnderstood(`\`${this.#reader.peek()?.text}\``);
    return expression;
  }

  #or(): Expression {
    if (++this.#depth > DEPTH_MAX) throw new NotUnderstood("parentheses in parentheses");
    const parts = [this.#and()];
    while (this.#reader.skip("or")) parts.push(this.#and());
    this.#depth -= 1;
    const [only] = parts;
    return parts.length === 1 && only !== undefined ? only : { kind: "or", parts };
  }

  #and(): Expression {
    const parts = [this.#not()];
    while (this.#reader.skip("and")) parts.push(this.#not());
    const [only] = parts;
    return parts.length === 1 && only !== undefined ? only : { kind: "and", parts };
  }

  #not(): Expression {
    return this.#reader.skip("not") ? { kind: "not", of: this.#not() } : this.#comparison();
  }

  #comparison(): Expression {
    const reader = this.#reader;
    let left = this.#value();
    for (;;) {
      const sign = reader.peek();
      if (reader.skip("is")) {
        const isNegated = reader.skip("not");
        const what = reader.name();
        if (what !== "null" && what !== "true" && what !== "false") throw new NotUnderstood(`\`IS ${what}\``);
        const is: Expression = { kind: "is", what, of: left };
        left = isNegated ? { kind: "not", of: is } : is;
      } else if (reader.skip("in")) left = { kind: "in", left, right: this.#list() };
      else if (reader.skip("not", "in")) left = { kind: "not", of: { kind: "in", left, right: this.#list() } };
      else if (sign?.kind === "sign" && COMPARISONS.has(sign.text)) {
        reader.take();
        const name = sign.text === "!=" ? "<>" : sign.text;
        if (reader.skip("any")) {
          reader.expect("(");
          left = { kind: "any", sign: name, left, right: this.#inParentheses() };
        } else left = { kind: "comparison", sign: name, left, right: this.#value() };
      } else return left;
    }
  }

  #list(): Select | Expression[] {
    const reader = this.#reader;
    reader.expect("(");
    if (reader.is("select")) {
      const select = this.#select();
      reader.expect(")");
      return select;
    }
    const items = [this.#or()];
    while (reader.skip(",")) items.push(this.#or());
    reader.expect(")");
    return items;
  }

  /** Reads what stands in parentheses whose first one is taken. */
  #inParentheses(): Expression {
    const expression: Expression = this.#reader.is("select") ? { kind: "select", select: this.#select() } : this.#or();
    this.#reader.expect(")");
    return expression;
  }

  /** Reads a value with its casts, members and elements. */
  #value(): Expression {
    const reader = this.#reader;
    let value = this.#primary();
    for (;;) {
      if (reader.skip("::")) value = { kind: "cast", of: value, type: typeOf(reader) };
      else if (reader.skip("[")) {
        const at = this.#or();
        reader.expect("]");
        value = { kind: "index", of: value, at };
      } else if (reader.is("->>") || reader.is("->")) {
        value = { kind: "call", name: reader.take().text, values: [value, this.#member()] };
      } else return value;
    }
  }

  /** Reads the name of a member, and its cast. */
  #member(): Expression {
    const member = this.#primary();
    while (this.#reader.skip("::")) typeOf(this.#reader);
    return member;
  }

  #primary(): Expression {
    const reader = this.#reader;
    if (reader.skip("(")) return this.#inParentheses();
    if (reader.skip("exists")) {
      reader.expect("(");
      const select = this.#select();
      reader.expect(")");
      return { kind: "exists", select };
    }
    if (reader.skip("array")) {
      reader.expect("[");
      const items: Expression[] = [];
      while (!reader.skip("]")) {
        items.push(this.#or());
        reader.skip(",");
      }
      return { kind: "array", items };
    }
    const token = reader.take();
    if (token.kind === "text") return { kind: "constant", value: token.text };
    if (token.kind === "number") return { kind: "constant", value: Number(token.text) };
    if (token.text === "-" && reader.peek()?.kind === "number") {
      return { kind: "constant", value: -Number(reader.take().text) };
    }
    if (token.kind === "sign") throw new NotUnderstood(`\`${token.text}\``);
    if (token.kind === "name") {
      if (token.text === "true" || token.text === "false") return { kind: "constant", value: token.text === "true" };
      if (token.text === "null") return { kind: "constant", value: null };
      if (/^current_|^case$|^select$/.test(token.text)) throw new NotUnderstood(`\`${token.text}\``);
    }
    const path = [token.text];
    while (reader.skip(".")) path.push(reader.name());
    if (!reader.skip("(")) return { kind: "column", path };
    const values: Expression[] = [];
    while (!reader.skip(")")) {
      values.push(this.#or());
      reader.skip(",");
    }
    return { kind: "call", name: path.join("."), values };
  }

  /** Reads a SELECT. Anything but a condition on one table is not understood. */
  #select(): Select {
    const reader = this.#reader;
    reader.expect("select");
    const values: Expression[] = [];
    do {
      values.push(this.#or());
      if (reader.skip("as")) reader.name();
    } while (reader.skip(","));
    if (!reader.skip("from")) return { values, from: null, where: null };
    const isWrapped = reader.skip("(");
    const place = reader.place();
    if (isWrapped) throw new NotUnderstood("a SELECT from several tables");
    reader.skip("as");
    const token = reader.peek();
    const hasAlias = token?.kind === "quoted" || (token?.kind === "name" && !ENDS_TABLE.has(token.text));
    const alias = hasAlias ? reader.name() : place.name;
    if (!reader.is("where") && !reader.is(")")) throw new NotUnderstood(`\`${reader.peek()?.text}\` in a SELECT`);
    const where = reader.skip("where") ? this.#or() : null;
    return { values, from: { ...place, alias }, where };
  }
}

const ENDS_TABLE = new Set([
  "where",
  "join",
  "inner",
  "left",
  "right",
  "full",
  "cross",
  "group",
  "order",
  "limit",
  "union",
  "on",
  "natural",
]);
