import { type CodeValue, FALSE, type Formula, join, literal, ofSameRecord } from "../rules/formula.ts";
import type { Expression, Select } from "./expression.ts";
import type { MovedColumn, MovedTable } from "./plan.ts";
import { code } from "./roles.ts";
import { NotUnderstood } from "./tokens.ts";

/** The record that a condition is about: the stored one of a filter, or what an update makes of it. */
export type Mode = "record" | "next";

/** A table whose columns an expression names. */
export interface Scope {
  table: MovedTable;
  alias: string;
  mode: Mode;
  outer: Scope | null;
  /** Whether the record is being inserted: no query finds it yet. */
  isNew: boolean;
  /** Whether a part that is left out would allow more, as within a NOT EXISTS. */
  isExact: boolean;
  /** Tables whose policies are being asked: there, a policy that asks itself is an error. */
  asked: readonly string[];
}

/** A value of an expression. */
export type Term =
  | { kind: "field"; column: MovedColumn; scope: Scope; depth: number }
  | {
      kind: "value";
      value: CodeValue;
      type: "text" | "number" | "boolean" | "time" | "null";
      constant?: string | number | boolean;
    };

/** Throws for what is not understood. */
export const refuse = (what: string): never => {
  throw new NotUnderstood(what);
};

/** Returns the one value of a SELECT. `mayHaveTable`: it may be of a table. */
export function only({ values, from, where }: Select, mayHaveTable = false): Expression {
  const [value] = values;
  if (value === undefined || values.length > 1) return refuse("a SELECT of several values");
  if (!mayHaveTable && (from !== null || where !== null)) return refuse("a value of another table");
  return value;
}

/** Returns an expression without casts. */
export function uncast(expression: Expression): Expression {
  return expression.kind === "cast" ? uncast(expression.of) : expression;
}

/** Whether the expression is the caller's id. */
export function isCaller(expression: Expression): boolean {
  if (expression.kind === "cast") return isCaller(expression.of);
  if (expression.kind === "select") return expression.select.from === null && expression.select.values.every(isCaller);
  return expression.kind === "call" && expression.name === "auth.uid";
}

/** Signs that hold where others do not. */
export const OPPOSITE: Readonly<Record<string, string>> = {
  "=": "<>",
  "<>": "=",
  "<": ">=",
  "<=": ">",
  ">": "<=",
  ">=": "<",
};
/** Signs with their sides changed. */
export const MIRRORED: Readonly<Record<string, string>> = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };
const OPERATORS: Readonly<Record<string, string>> = { "=": "==", "<>": "!=" };
const SIGNS: Readonly<Record<string, string>> = { "=": "===", "<>": "!==" };

/** Returns an expression without casts and SELECTs around it. */
export function bare(expression: Expression): Expression {
  if (expression.kind === "cast") return bare(expression.of);
  return expression.kind === "select" && expression.select.from === null ? bare(only(expression.select)) : expression;
}

/** Returns the term of a constant. */
export function constantTerm(value: string | number | boolean | null): Term {
  const type =
    value === null ? "null" : typeof value === "string" ? "text" : typeof value === "number" ? "number" : "boolean";
  return { kind: "value", value: literal(value), type, ...(value === null ? {} : { constant: value }) };
}

/** Returns a term as another type. Errors: NotUnderstood where the value would be another one. */
export function castTerm(term: Term, type: string): Term {
  const isText = /^(?:text|uuid|character varying|varchar)(?:\(|$)/.test(type);
  if (term.kind === "field") {
    // The text of an id, of a uuid or of an enumeration is the value that it has here.
    const isSame = term.column.kind === "text" && isText && isPlainText(term.column);
    return isSame ? term : refuse(`a cast to ${type}`);
  }
  if (term.type === "text" && term.constant === undefined) return isText ? term : refuse(`a cast to ${type}`);
  if (typeof term.constant === "string" && type === "uuid") return constantTerm(term.constant.toLowerCase());
  if (typeof term.constant === "string" && /^(?:integer|bigint|smallint|numeric|double precision)/.test(type)) {
    return constantTerm(Number(term.constant));
  }
  if (typeof term.constant === "string" && (isText || !/^(?:bool|time|date|interval|json|char)/.test(type)))
    return term;
  return term.type === "number" && /^(?:integer|bigint|smallint|numeric|double precision)/.test(type)
    ? term
    : refuse(`a cast to ${type}`);
}

/** Whether the texts of a column compare as they do here: not by another case, and without blanks behind them. */
const isPlainText = ({ column: { type }, isEnum }: MovedColumn): boolean =>
  isEnum || /^(?:text|uuid|character varying|varchar|smallint|integer|bigint)(?:\(|$)/.test(type);

/** Finds a column by its name, from the innermost table outwards. */
export function columnTerm(path: readonly string[], scope: Scope): Term {
  const name = path.at(-1) ?? "";
  const of = path.at(-2);
  let depth = 0;
  for (let at: Scope | null = scope; at !== null; at = at.outer, depth += 1) {
    if (of !== undefined && of !== at.alias) continue;
    const column = [...at.table.columns, ...at.table.hidden].find(({ column: one }) => one.name === name);
    if (column === undefined) {
      if (of !== undefined) break;
      continue;
    }
    if (at.table.hidden.includes(column)) return refuse(`${name}, which is hidden`);
    if (depth > 1) return refuse("a column of two SELECTs around");
    return { kind: "field", column, scope: at, depth };
  }
  return refuse(`the column ${path.join(".")}`);
}

/** Returns the term of a function about the caller or the time. */
export function callTerm({ name, values }: Expression & { kind: "call" }): Term {
  if (name === "auth.uid") return { kind: "value", value: { code: "auth.id", needs: ["auth"] }, type: "text" };
  if (name === "now") return { kind: "value", value: { code: "new Date().toISOString()", needs: [] }, type: "time" };
  if (name === "auth.email") return EMAIL;
  const [of, member] = values;
  const isToken = of !== undefined && bare(of).kind === "call" && (bare(of) as { name: string }).name === "auth.jwt";
  if (name === "->>" && isToken && member?.kind === "constant") {
    if (member.value === "email") return EMAIL;
    if (member.value === "sub") return { kind: "value", value: { code: "auth.id", needs: ["auth"] }, type: "text" };
  }
  return refuse(name === "->" || name === "->>" ? "a member of JSON" : `${name}()`);
}

const EMAIL: Term = { kind: "value", value: { code: "auth.email", needs: ["auth", "email"] }, type: "text" };
/** There, a user has an address that is confirmed. */
const CONFIRMED = code("auth.emailVerified", "auth");

const confirmed = ({ code: text }: CodeValue): Formula[] => (text === "auth.email" ? [CONFIRMED] : []);

/** Compares two values that need no record. */
export function valueComparison(left: Term & { kind: "value" }, sign: string, right: Term): Formula {
  if (right.kind !== "value" || left.type === "null" || right.type === "null") return FALSE;
  const operator = SIGNS[sign];
  if (operator === undefined || left.type !== "text" || right.type !== "text")
    return refuse("such values are compared");
  const needs = [...new Set([...left.value.needs, ...right.value.needs])];
  return join("and", [
    code(`${left.value.code} ${operator} ${right.value.code}`, ...needs),
    ...confirmed(left.value),
    ...confirmed(right.value),
  ]);
}

/** Compares a column with a value. A column that is null equals nothing, and differs from nothing. */
export function columnComparison(
  left: Term & { kind: "field" },
  sign: string,
  right: Term & { kind: "value" },
): Formula {
  if (right.type === "null") return FALSE;
  const { column } = left;
  const value = valueFor(column, right);
  const operator = OPERATORS[sign] ?? sign;
  if (operator !== "==" && operator !== "!=" && !["integer", "number", "datetime"].includes(column.kind)) {
    return refuse(`the order of ${column.column.name}`);
  }
  const isGuarded = operator !== "==" && column.isNullable;
  return join("and", [
    condition(left, operator, value),
    ...(isGuarded ? [condition(left, "!=", literal(null))] : []),
    ...confirmed(right.value),
  ]);
}

/** Returns the value as the column has it here. */
function valueFor(
  { kind, column, isEnum, target, name }: MovedColumn,
  { value, type, constant }: Term & { kind: "value" },
): CodeValue {
  if (kind === "text") {
    if (!isPlainText({ column, isEnum } as MovedColumn)) return refuse(`${column.type} is compared`);
    if (typeof constant === "number" && (target !== null || name === "id") && /int/.test(column.type))
      return literal(String(constant));
    if (type !== "text") return refuse("values of several types are compared");
    const isNumber = /int/.test(column.type);
    // An id of a number is written in one way alone.
    if (isNumber) return refuse("a number is compared with a text");
    return column.type === "uuid" && typeof constant === "string" ? literal(constant.toLowerCase()) : value;
  }
  const wanted = { integer: "number", number: "number", boolean: "boolean", datetime: "time" }[kind as string];
  if (wanted === undefined || wanted !== type) return refuse(`${column.type} is compared with another type`);
  return value;
}

/** Compares a column with one of the record around it. */
export function fieldComparison(
  left: Term & { kind: "field" },
  sign: string,
  right: Term & { kind: "field" },
): Formula {
  if (left.depth === right.depth) return ownComparison(left, sign, right);
  if (sign !== "=") return refuse("columns are compared by their order");
  const [inner, around] = left.depth < right.depth ? [left, right] : [right, left];
  const isAlike = inner.column.kind === around.column.kind && isPlainText(inner.column) === isPlainText(around.column);
  if (!isAlike || !["text", "integer", "boolean"].includes(inner.column.kind))
    return refuse("columns of several types are compared");
  if (inner.column.kind === "text" && !isPlainText(inner.column))
    return refuse(`${inner.column.column.type} is compared`);
  if (around.scope.mode === "next") {
    const text = `next${memberOf(around.column.name)}`;
    const found: Formula = {
      kind: "condition",
      field: inner.column.name,
      operator: "==",
      value: { code: text, needs: [] },
    };
    return around.column.isNullable ? join("and", [code(`${text} !== null`), found]) : found;
  }
  return { kind: "condition", field: inner.column.name, operator: "==", value: { outer: around.column.name } };
}

/** Compares two columns of one record. A null equals nothing, and differs from nothing. */
function ownComparison(left: Term & { kind: "field" }, sign: string, right: Term & { kind: "field" }): Formula {
  const { scope, column } = left;
  const isAlike = column.kind === right.column.kind && isPlainText(column) === isPlainText(right.column);
  const isOrdered = ["integer", "number", "datetime"].includes(column.kind);
  const isEqual = sign === "=" || sign === "<>";
  if (!isAlike || scope.outer !== null || (!isOrdered && (!isEqual || !isPlainText(column)))) {
    return refuse("two columns of one record are compared");
  }
  const present = [left, right].flatMap((term) =>
    term.column.isNullable && sign !== "=" ? [condition(term, "!=", literal(null))] : [],
  );
  if (scope.mode === "record" && !scope.isNew) {
    const compared = ofSameRecord(scope.table.name, column.name, OPERATORS[sign] ?? sign, right.column.name);
    return join("and", [compared, ...present]);
  }
  const [one, other] = [left, right].map((term) => `${scope.isNew ? "record" : "next"}${memberOf(term.column.name)}`);
  const nulls = [left, right].flatMap((term) =>
    term.column.isNullable ? [code(`${scope.isNew ? "record" : "next"}${memberOf(term.column.name)} !== null`)] : [],
  );
  return join("and", [...nulls, code(`${one} ${SIGNS[sign] ?? sign} ${other}`)]);
}

const memberOf = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);

/** Returns a condition on the record of a scope, as a filter, or as code about what an update makes of it. */
export function condition(
  { column, scope, depth }: Term & { kind: "field" },
  operator: string,
  value: CodeValue,
): Formula {
  const { name } = column;
  if (scope.mode === "record") {
    if (depth > 0) return refuse("a condition on the record around a SELECT");
    return { kind: "condition", field: name, operator, value, ...(column.isEnum ? { isChoice: true } : {}) };
  }
  const text = `next${memberOf(name)}`;
  if (column.kind === "boolean" && value.code !== "null") {
    return code(`${text} ${operator === "==" ? "===" : "!=="} ${value.code}`, ...value.needs);
  }
  const sign = operator === "==" ? "===" : operator === "!=" ? "!==" : operator;
  const isOrder = sign.length < 3;
  const guard = isOrder && column.isNullable ? `${text} !== null && ` : "";
  return code(`${guard}${text} ${sign} ${value.code}`, ...value.needs);
}
