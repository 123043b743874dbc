import type { Remarks } from "../remarks.ts";
import { boundProblem } from "../rules/bounds.ts";
import {
  absorbed,
  type CodeValue,
  FALSE,
  type Formula,
  isConstant,
  join,
  literal,
  type Need,
  ofSameRecord,
  TRUE,
  without,
} from "../rules/formula.ts";
import { type Expression, parseExpression, type Select } from "./expression.ts";
import { CALLERS, type Caller, isOf, type MovedColumn, type MovedTable, type MovePlan } from "./plan.ts";
import type { PgCommand, PgPolicy, PgTable } from "./source.ts";
import { NotUnderstood } from "./tokens.ts";

/** The record that a condition is about: the stored one of a filter, or what an update makes of it. */
type Mode = "record" | "next";

/** A table whose columns an expression names. */
interface Scope {
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
type Term =
  | { kind: "field"; column: MovedColumn; scope: Scope; depth: number }
  | {
      kind: "value";
      value: CodeValue;
      type: "text" | "number" | "boolean" | "time" | "null";
      constant?: string | number | boolean;
    };

/** Parts of rules that were left out, and why. */
type Tell = (why: string) => void;

const code = (text: string, ...needs: Need[]): Formula => ({ kind: "code", code: text, needs });
/** Holds for every caller with a token. */
const SIGNED_IN = code("true", "auth");
const NOBODY = code("auth === null");

const refuse = (what: string): never => {
  throw new NotUnderstood(what);
};

/** Translates policies of a plan's tables. Each formula allows as much as the policies do, or less. */
export class Translation {
  readonly #plan: MovePlan;
  readonly #remarks: Remarks;
  readonly #indexes = new Map<string, Set<string>>();

  constructor(plan: MovePlan, remarks: Remarks) {
    this.#plan = plan;
    this.#remarks = remarks;
  }

  /** Returns the fields by which rules look a table up, and that no index begins with. */
  indexesOf(table: string): readonly string[] {
    return [...(this.#indexes.get(table) ?? [])];
  }

  /** Returns what a rule asks, and the comments above it. */
  ruleOf(table: MovedTable, action: "read" | "insert" | "update" | "delete"): { formula: Formula; comments: string[] } {
    const why = new Set<string>();
    const tell: Tell = (text) => void why.add(text);
    const command = action === "read" ? "select" : action;
    if (!table.table.isSecured) {
      const text = "row-level security is off: there everybody with a right to the table may";
      if (command === "select") this.#remarks.look(table.table.name, `denies here, as its ${text}`);
      return { formula: FALSE, comments: command === "select" ? [`Denies here: ${text}.`] : [] };
    }
    const scope = { ...rootOf(table, "record"), isNew: action === "insert" };
    const parts = [this.#policies(scope, command, "using", tell)];
    if (command === "update" || command === "delete") parts.push(this.#policies(scope, "select", "using", tell));
    if (command === "update") {
      // What an update makes of a record has to pass, and to stay visible.
      const next = rootOf(table, "next");
      parts.push(this.#policies(next, "update", "check", tell), this.#policies(next, "select", "using", tell));
    }
    if (command === "insert" || command === "update") parts.push(...sentColumns(table.table, command));
    const formula = this.#bounded(join("and", parts), tell);
    const policies = table.table.policies.filter((policy) => policy.command === "all" || policy.command === command);
    const originals = policies.map(policyText);
    if (why.size === 0) return { formula, comments: [] };
    const reasons = `${[...why].join("; ")}`;
    this.#remarks.look(`${table.table.name}, ${command}`, `is stricter here: ${reasons}`);
    const head = isConstant(formula, false) ? "Denies" : "Stricter";
    return { formula, comments: [...originals, `${head} here: not translated: ${reasons}.`] };
  }

  /** Joins the policies of a command: one of the permissive ones, all of the restrictive ones, for callers with a right to the table. */
  #policies(scope: Scope, command: PgCommand, part: "using" | "check", tell: Tell): Formula {
    const { table } = scope.table;
    const concerned = table.policies.filter((policy) => policy.command === "all" || policy.command === command);
    const permissive: Formula[] = [];
    const restrictive: Formula[] = [];
    for (const policy of concerned) {
      const roles = CALLERS.filter((caller) => policy.roles.some((role) => isOf(role, caller)));
      if (roles.length === 0) continue;
      const formula = this.#policy(policy, scope, command === "insert" ? "check" : part, tell);
      if (policy.isRestrictive)
        restrictive.push(roles.length === 2 ? formula : join("or", [othersThan(roles), formula]));
      else permissive.push(gated(roles, formula));
    }
    const granted = CALLERS.filter((caller) => isGranted(table, caller, command));
    return gated(granted, join("and", [join("or", permissive), ...restrictive]));
  }

  #policy(policy: PgPolicy, scope: Scope, part: "using" | "check", tell: Tell): Formula {
    // Where there is no WITH CHECK, USING is asked of the new record.
    const sql = part === "check" ? (policy.check ?? policy.using) : policy.using;
    if (sql === null) return TRUE;
    return this.#attempt(scope, tell, `policy "${policy.name}"`, () =>
      this.#formula(parseExpression(sql), true, scope, tell),
    );
  }

  /** Returns false in place of what is not understood, where that allows less. */
  #attempt(scope: Scope, tell: Tell, what: string, work: () => Formula): Formula {
    try {
      return work();
    } catch (cause) {
      if (!(cause instanceof NotUnderstood) || scope.isExact) throw cause;
      tell(what === "" ? cause.message : `${what}: ${cause.message}`);
      return FALSE;
    }
  }

  /** Returns the formula that holds exactly where the expression is true, or exactly where it is false: it may be neither. */
  #formula(expression: Expression, wanted: boolean, scope: Scope, tell: Tell): Formula {
    switch (expression.kind) {
      case "and":
      case "or": {
        const kind = (expression.kind === "and") === wanted ? "and" : "or";
        const parts = expression.parts.map((part) =>
          this.#attempt(scope, tell, "", () => this.#formula(part, wanted, scope, tell)),
        );
        return join(kind, parts);
      }
      case "not":
        return this.#formula(expression.of, !wanted, scope, tell);
      case "constant":
        return expression.value === wanted ? TRUE : FALSE;
      case "is":
        return this.#is(expression, wanted, scope, tell);
      case "comparison":
        return this.#compare(expression.sign, expression.left, expression.right, wanted, scope);
      case "any":
        return this.#any(expression, wanted, scope);
      case "in":
        return "from" in expression.right
          ? this.#inSelect(expression.left, expression.right, wanted, scope, tell)
          : this.#listed(expression.left, expression.right, wanted, scope);
      case "exists":
        return this.#exists(expression.select, null, wanted, scope, tell);
      case "select":
        return this.#formula(only(expression.select), wanted, scope, tell);
      case "cast":
        return this.#formula(expression.of, wanted, scope, tell);
      case "column":
        return this.#compare("=", expression, { kind: "constant", value: wanted }, true, scope);
      case "call":
      case "array":
      case "index":
        return refuse(expression.kind === "call" ? `${expression.name}()` : "an array");
      default:
        return expression satisfies never;
    }
  }

  #is({ what, of }: Expression & { kind: "is" }, wanted: boolean, scope: Scope, tell: Tell): Formula {
    if (what !== "null") {
      // IS TRUE is never unknown: what is not true counts as false.
      if (!wanted) return refuse(`NOT … IS ${what.toUpperCase()}`);
      return this.#formula(of, what === "true", scope, tell);
    }
    if (isCaller(of)) return wanted ? NOBODY : SIGNED_IN;
    const term = this.#term(of, scope);
    if (term.kind !== "field") return refuse("IS NULL of no column");
    return condition(term, wanted ? "==" : "!=", literal(null));
  }

  #compare(sign: string, one: Expression, other: Expression, wanted: boolean, scope: Scope): Formula {
    const operator = wanted ? sign : (OPPOSITE[sign] ?? refuse(sign));
    const role = roleComparison(one, other, operator);
    if (role !== null) return role;
    let [left, right] = [this.#term(one, scope), this.#term(other, scope)];
    let mirrored = operator;
    if (left.kind === "value" || (left.depth > 0 && right.kind === "field" && right.depth === 0)) {
      [left, right] = [right, left];
      mirrored = MIRRORED[operator] ?? operator;
    }
    if (left.kind === "value") return valueComparison(left, mirrored, right);
    if (right.kind === "field") return fieldComparison(left, mirrored, right);
    return columnComparison(left, mirrored, right);
  }

  #any({ sign, left, right }: Expression & { kind: "any" }, wanted: boolean, scope: Scope): Formula {
    if (sign !== "=") return refuse(`${sign} ANY`);
    const list = uncast(right);
    if (list.kind === "array") return this.#listed(left, list.items, wanted, scope);
    if (list.kind === "constant" && typeof list.value === "string") return refuse("ANY of a text");
    const [item, term] = [this.#term(left, scope), this.#term(list, scope)];
    if (
      !wanted ||
      term.kind !== "field" ||
      term.column.kind !== "list" ||
      item.kind !== "value" ||
      item.type !== "text"
    ) {
      return refuse("ANY of such a value");
    }
    if (term.depth > 0 || term.scope.mode === "next") return refuse("ANY of a list of a new record");
    if (!/^(?:text|uuid|character varying|varchar)/.test(term.column.column.type)) return refuse("ANY of such a list");
    return { kind: "condition", field: term.column.name, operator: "contains", value: item.value };
  }

  #listed(left: Expression, items: readonly Expression[], wanted: boolean, scope: Scope): Formula {
    const parts = items.map((item) => this.#compare("=", left, item, wanted, scope));
    return join(wanted ? "or" : "and", parts);
  }

  #inSelect(left: Expression, select: Select, wanted: boolean, scope: Scope, tell: Tell): Formula {
    // NOT IN is unknown where one of the values is.
    if (!wanted) return refuse("NOT IN (SELECT …)");
    return this.#exists(select, left, true, scope, tell);
  }

  /** `left`: the value that has to be among those of the SELECT; null: EXISTS. */
  #exists(select: Select, left: Expression | null, wanted: boolean, scope: Scope, tell: Tell): Formula {
    const { from } = select;
    if (from === null) return refuse("a SELECT without a table");
    const table = this.#plan.tables.find(({ table: one }) => one.schema === from.schema && one.name === from.name);
    if (table === undefined) return refuse(`the table ${from.schema}.${from.name}`);
    const isExact = scope.isExact || !wanted;
    const inner: Scope = {
      table,
      alias: from.alias,
      mode: "record",
      outer: scope,
      isNew: false,
      isExact,
      asked: scope.asked,
    };
    const parts: Formula[] = [];
    if (select.where !== null) parts.push(this.#formula(select.where, true, inner, tell));
    if (left !== null) parts.push(this.#compare("=", only(select, true), outside(left, scope), true, inner));
    parts.push(this.#visible(table, inner, tell));
    const { guards, rest } = hoisted(absorbed(join("and", parts)));
    if (isConstant(rest, false)) return wanted ? FALSE : refuse("a SELECT of nothing");
    this.#noteIndex(table, rest);
    const step = { alias: from.alias, table: table.name, isMany: true, link: null };
    if (wanted) return join("and", [...guards, { kind: "some", step, inner: rest }]);
    if (guards.length > 0) return refuse("NOT EXISTS that depends on the caller");
    return { kind: "none", step, inner: rest };
  }

  /** Returns what the caller may see of a table in a policy of another one: there, its own policies apply. */
  #visible(table: MovedTable, scope: Scope, tell: Tell): Formula {
    const { name } = table.table;
    if (!table.table.isSecured) {
      if (CALLERS.some((caller) => !isGranted(table.table, caller, "select"))) return refuse(`no right to ${name}`);
      return TRUE;
    }
    if (scope.asked.includes(name)) return refuse(`the policies of ${name} ask each other`);
    const asked: Scope = { ...scope, alias: name, asked: [...scope.asked, name] };
    return this.#policies(asked, "select", "using", tell);
  }

  #noteIndex({ name, columns, indexes }: MovedTable, formula: Formula): void {
    const parts = formula.kind === "and" ? formula.parts : [formula];
    const equal = parts.flatMap((part) => (part.kind === "condition" && part.operator === "==" ? [part.field] : []));
    const isIndexed = (field: string): boolean =>
      field === "id" ||
      indexes.some(({ fields }) => fields[0] === field) ||
      columns.some((column) => column.name === field && (column.target !== null || isUniqueField(column)));
    const [first] = equal;
    if (first === undefined) throw new NotUnderstood(`${name} is looked up by no column`);
    if (!equal.some(isIndexed)) this.#indexes.set(name, new Set([...(this.#indexes.get(name) ?? []), first]));
  }

  #bounded(whole: Formula, tell: Tell): Formula {
    const formula = absorbed(whole);
    // Code within a filter makes a group of its own.
    const isMixed = formula.kind === "and" && formula.parts.some((part) => part.kind !== "code" && hasCode(part));
    const problem = boundProblem(isMixed ? { kind: "or", parts: [formula] } : formula);
    if (problem === null) return formula;
    tell(problem);
    return FALSE;
  }

  #term(expression: Expression, scope: Scope): Term {
    switch (expression.kind) {
      case "cast":
        return castTerm(this.#term(expression.of, scope), expression.type);
      case "select":
        return this.#term(only(expression.select), scope);
      case "constant":
        return constantTerm(expression.value);
      case "column":
        return columnTerm(expression.path, scope);
      case "call":
        return callTerm(expression);
      default:
        return refuse(`a value that is computed (${expression.kind})`);
    }
  }
}

const isUniqueField = ({ members }: MovedColumn): boolean => members.some(({ name }) => name === "unique");

const rootOf = (table: MovedTable, mode: Mode): Scope => ({
  table,
  alias: table.table.name,
  mode,
  outer: null,
  isNew: false,
  isExact: false,
  asked: [table.table.name],
});

/** Marks an expression as one of the scope around. */
const outside = (expression: Expression, { alias }: Scope): Expression =>
  expression.kind === "column" && expression.path.length === 1
    ? { kind: "column", path: [alias, ...expression.path] }
    : expression;

/** Returns the one value of a SELECT. `mayHaveTable`: it may be of a table. */
function only({ values, from, where }: Select, mayHaveTable = false): Expression {
  const [value] = values;
  if (value === undefined || values.length > 1) return refuse("a SELECT of several values");
  if (!mayHaveTable && (from !== null || where !== null)) return refuse("a value of another table");
  return value;
}

function uncast(expression: Expression): Expression {
  return expression.kind === "cast" ? uncast(expression.of) : expression;
}

/** Whether the expression is the caller's id. */
function isCaller(expression: Expression): boolean {
  if (expression.kind === "cast") return isCaller(expression.of);
  if (expression.kind === "select") return expression.select.from === null && expression.select.values.every(isCaller);
  return expression.kind === "call" && expression.name === "auth.uid";
}

const OPPOSITE: Readonly<Record<string, string>> = { "=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<" };
const MIRRORED: Readonly<Record<string, string>> = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };
const OPERATORS: Readonly<Record<string, string>> = { "=": "==", "<>": "!=" };
const SIGNS: Readonly<Record<string, string>> = { "=": "===", "<>": "!==" };

/** Compares the caller's role with a name; null: it is no such comparison. */
function roleComparison(one: Expression, other: Expression, sign: string): Formula | null {
  const [left, right] = [bare(one), bare(other)];
  const [call, name] = left.kind === "call" && left.name === "auth.role" ? [left, right] : [right, left];
  if (call.kind !== "call" || call.name !== "auth.role") return null;
  if (name.kind !== "constant" || (sign !== "=" && sign !== "<>")) return refuse("auth.role()");
  const isThis = (role: Caller): boolean => (name.value === role) === (sign === "=");
  return onlyFor(CALLERS.filter(isThis));
}

function bare(expression: Expression): Expression {
  if (expression.kind === "cast") return bare(expression.of);
  return expression.kind === "select" && expression.select.from === null ? bare(only(expression.select)) : expression;
}

/** Returns what holds for callers of these roles alone. */
function onlyFor(roles: readonly Caller[]): Formula {
  if (roles.length === 2) return TRUE;
  if (roles.length === 0) return FALSE;
  return roles[0] === "anon" ? NOBODY : SIGNED_IN;
}

/** Returns a formula for callers of these roles. One that asks who the caller is holds for nobody without a token anyway. */
function gated(roles: readonly Caller[], formula: Formula): Formula {
  const isForUsers = roles.length === 1 && roles[0] === "authenticated";
  if (isForUsers && isConstant(without(formula, WITHOUT_TOKEN), false)) return formula;
  return join("and", [onlyFor(roles), formula]);
}

const WITHOUT_TOKEN: ReadonlySet<Need> = new Set<Need>(["auth", "email"]);

const othersThan = (roles: readonly Caller[]): Formula => onlyFor(CALLERS.filter((caller) => !roles.includes(caller)));

/** Whether a caller has a right to a table, or to some of its columns. */
export function isGranted({ grants }: PgTable, caller: Caller, command: PgCommand): boolean {
  return grants.some(({ role, command: right }) => isOf(role, caller) && (right === "all" || right === command));
}

/** Keeps callers from sending columns for which they have no right. */
function sentColumns({ grants, columns }: PgTable, command: PgCommand): Formula[] {
  const rights = CALLERS.map((caller) =>
    grants.filter(({ role, command: right }) => isOf(role, caller) && (right === "all" || right === command)),
  ).filter((some) => some.length > 0);
  const limited = rights.filter((some) => some.every((right) => right.columns !== null));
  if (limited.length === 0) return [];
  const allowed = columns.filter(({ name }) =>
    limited.every((some) => some.some((right) => right.columns?.includes(name) === true)),
  );
  const names = JSON.stringify(allowed.map(({ name }) => name));
  return [code(`(sent ?? ["?"]).every((name) => ${names}.includes(name))`)];
}

function constantTerm(value: string | number | boolean | null): Term {
  const type =
    value === null ? "null" : typeof value === "string" ? "text" : typeof value === "number" ? "number" : "boolean";
  return { kind: "value", value: literal(value), type, ...(value === null ? {} : { constant: value }) };
}

function castTerm(term: Term, type: string): Term {
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

function columnTerm(path: readonly string[], scope: Scope): Term {
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

function callTerm({ name, values }: Expression & { kind: "call" }): Term {
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
function valueComparison(left: Term & { kind: "value" }, sign: string, right: Term): Formula {
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
function columnComparison(left: Term & { kind: "field" }, sign: string, right: Term & { kind: "value" }): Formula {
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
function fieldComparison(left: Term & { kind: "field" }, sign: string, right: Term & { kind: "field" }): Formula {
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
function condition({ column, scope, depth }: Term & { kind: "field" }, operator: string, value: CodeValue): Formula {
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

/** Parts that are about the caller alone, which no filter on other tables can ask, and the rest. */
function hoisted(formula: Formula): { guards: Formula[]; rest: Formula } {
  const parts = formula.kind === "and" ? formula.parts : [formula];
  const guards = parts.filter(({ kind }) => kind === "code");
  const rest = parts.filter(({ kind }) => kind !== "code");
  if (rest.some(hasCode)) return refuse("several ways to a related record, by who asks");
  return { guards, rest: join("and", rest) };
}

function hasCode(formula: Formula): boolean {
  if (formula.kind === "and" || formula.kind === "or") return formula.parts.some(hasCode);
  if (formula.kind === "some" || formula.kind === "none") return hasCode(formula.inner);
  return formula.kind === "code";
}

/** Returns a policy as a comment quotes it. */
function policyText({ name, isRestrictive, command, roles, using, check }: PgPolicy): string {
  const parts = [
    `CREATE POLICY ${JSON.stringify(name)}`,
    ...(isRestrictive ? ["AS RESTRICTIVE"] : []),
    `FOR ${command.toUpperCase()} TO ${roles.join(", ")}`,
    ...(using === null ? [] : [`USING (${using})`]),
    ...(check === null ? [] : [`WITH CHECK (${check})`]),
  ];
  return parts.join(" ").replace(/\s+/g, " ");
}
