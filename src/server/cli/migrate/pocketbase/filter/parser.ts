import { FilterError, type Token, tokensOf } from "./tokens.ts";

export type Operator = "=" | "!=" | ">" | ">=" | "<" | "<=" | "~" | "!~";

export type Operand =
  | { kind: "identifier" | "text"; text: string }
  | { kind: "number"; value: number }
  | { kind: "call"; text: string; values: readonly Operand[] };

export interface Comparison {
  kind: "comparison";
  left: Operand;
  operator: Operator;
  /** Whether one of several values is enough (`?=`). */
  isAny: boolean;
  right: Operand;
}

export type Expression = Comparison | { kind: "and" | "or"; parts: readonly Expression[] };

const DEPTH_MAX = 50;

/** Parses a rule that is not empty. `&&` binds more tightly than `||`. Errors: FilterError. */
export function parseFilter(rule: string): Expression {
  const tokens = tokensOf(rule);
  let at = 0;
  const peek = (): Token | undefined => tokens[at];
  const isNext = (kind: Token["kind"], text?: string): boolean =>
    peek()?.kind === kind && (text === undefined || peek()?.text === text);

  const joined = (kind: "and" | "or", sign: "&&" | "||", part: () => Expression): Expression => {
    const parts = [part()];
    while (isNext("join", sign)) {
      at += 1;
      parts.push(part());
    }
    const [only] = parts;
    return parts.length === 1 && only !== undefined ? only : { kind, parts };
  };
  const either = (depth: number): Expression => {
    if (depth > DEPTH_MAX) throw new FilterError("it nests too deeply");
    return joined("or", "||", () => joined("and", "&&", () => single(depth)));
  };
  const single = (depth: number): Expression => {
    if (isNext("bracket", "(")) {
      at += 1;
      const inside = either(depth + 1);
      if (!isNext("bracket", ")")) throw new FilterError("a bracket is not closed");
      at += 1;
      return inside;
    }
    const left = operand();
    const operator = peek();
    if (operator?.kind !== "operator") throw new FilterError("a comparison has no operator");
    at += 1;
    const isAny = operator.text.startsWith("?");
    // The pattern of the token has these alone.
    const sign = operator.text.slice(isAny ? 1 : 0) as Operator;
    return { kind: "comparison", left, operator: sign, isAny, right: operand() };
  };
  const operand = (depth = 0): Operand => {
    const token = peek();
    at += 1;
    if (token?.kind === "number") return { kind: "number", value: Number(token.text) };
    if (token?.kind === "text") return { kind: "text", text: token.text };
    if (token?.kind !== "identifier") throw new FilterError("a value is missing");
    if (!isNext("bracket", "(")) return { kind: "identifier", text: token.text };
    if (depth > DEPTH_MAX) throw new FilterError("it nests too deeply");
    return { kind: "call", text: token.text, values: called(depth + 1) };
  };
  const called = (depth: number): Operand[] => {
    const values: Operand[] = [];
    at += 1;
    while (!isNext("bracket", ")")) {
      if (values.length > 0 && !isNext("comma")) throw new FilterError("a bracket is not closed");
      if (values.length > 0) at += 1;
      values.push(operand(depth));
    }
    at += 1;
    return values;
  };

  const expression = either(0);
  if (at < tokens.length) throw new FilterError(`${JSON.stringify(tokens[at]?.text)} is not expected there`);
  return expression;
}
