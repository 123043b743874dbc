import { isWord, type SqlToken, splitStatements, tokenizeSql, withoutExplain } from "../../../../kernel/sql/tokens.ts";
import { PARAMETER_NUMBER_MAX } from "../limits.ts";
import type { Binding } from "../query.ts";

/** Single statement of a query. SQLite's authorizer decides what it may do: see judge.ts. */
export interface Statement {
  sql: string;
  /** Kind of statement: VACUUM runs outside a transaction; an explained statement is only compiled. */
  kind: "vacuum" | "explained" | "other";
  /** Names of the parameters, in order; null for numbered parameters. */
  parameters: readonly (string | null)[];
}

/** Error of a query that is not a single statement. */
export class StatementError extends Error {}

/** Parses a query. Errors: StatementError for several statements, none, or a text that SQLite cannot tokenize. [DQ4] */
export function parseStatement(query: string): Statement {
  const [tokens = [], ...others] = splitStatements(tokenizeSql(query));
  const [first] = tokens;
  const last = tokens.at(-1);
  if (first === undefined || last === undefined) throw new StatementError('"query" must hold a statement');
  const illegal = [tokens, ...others].flat().find(({ kind }) => kind === "illegal");
  if (illegal !== undefined) {
    throw new StatementError(`unrecognized token: "${query.slice(illegal.start, illegal.start + 20)}"`);
  }
  if (others.length > 0) throw new StatementError('"query" must be one statement, got several');
  return { sql: query.slice(first.start, last.end), kind: kindOf(tokens), parameters: parametersOf(tokens) };
}

function kindOf(tokens: readonly SqlToken[]): Statement["kind"] {
  if (withoutExplain(tokens) !== tokens) return "explained";
  return isWord(tokens[0], "vacuum") ? "vacuum" : "other";
}

/** Lists the parameters, numbered as SQLite does: `?` is the next one, `?3` the third, and a new name the next one. */
function parametersOf(tokens: readonly SqlToken[]): (string | null)[] {
  const parameters: (string | null)[] = [];
  for (const { kind, text } of tokens) {
    if (kind !== "variable") continue;
    if (text === "?") parameters.push(null);
    else if (!text.startsWith("?")) {
      if (!parameters.includes(text)) parameters.push(text);
    } else {
      // SQLite refuses numbers that are too large, before anything is bound.
      const number = Math.min(Number(text.slice(1)), PARAMETER_NUMBER_MAX);
      while (parameters.length < number) parameters.push(null);
    }
  }
  return parameters;
}

type Bound = string | number | bigint | null;

/** Returns the values in the form of node:sqlite: named parameters by name, the others in order. */
export function bindings(
  parameters: readonly (string | null)[],
  values: readonly Binding[],
): [named: Record<string, Bound>, ...numbered: Bound[]] {
  const named: Record<string, Bound> = {};
  const numbered: Bound[] = [];
  for (const [index, name] of parameters.entries()) {
    const value = bindable(values[index] ?? null);
    if (name === null) numbered.push(value);
    else named[name] = value;
  }
  return [named, ...numbered];
}

/** Converts a value for binding: whole numbers become 64-bit integers, as numbers would be bound as REAL. */
function bindable(value: Binding): Bound {
  if (typeof value === "boolean") return value ? 1n : 0n;
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;
}
