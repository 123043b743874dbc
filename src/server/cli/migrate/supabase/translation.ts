import type { Remarks } from "../remarks.ts";
import { boundProblem } from "../rules/bounds.ts";
import { absorbed, FALSE, type Formula, isConstant, join, literal, TRUE } from "../rules/formula.ts";
import { type Expression, parseExpression, type Select } from "./expression.ts";
import { CALLERS, type Caller, isOf, type MovedColumn, type MovedTable, type MovePlan } from "./plan.ts";
import { gated, isGranted, NOBODY, onlyFor, othersThan, SIGNED_IN, sentColumns } from "./roles.ts";
import type { PgCommand, PgPolicy } from "./source.ts";
import {
  bare,
  callTerm,
  castTerm,
  columnComparison,
  columnTerm,
  condition,
  constantTerm,
  fieldComparison,
  isCaller,
  MIRRORED,
  type Mode,
  OPPOSITE,
  only,
  refuse,
  type Scope,
  type Term,
  uncast,
  valueComparison,
} from "./terms.ts";
import { NotUnderstood } from "./tokens.ts";

/** Parts of rules that were left out, and why. */
type Tell = (why: string) => void;

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

/** Compares the caller's role with a name; null: it is no such comparison. */
function roleComparison(one: Expression, other: Expression, sign: string): Formula | null {
  const [left, right] = [bare(one), bare(other)];
  const [call, name] = left.kind === "call" && left.name === "auth.role" ? [left, right] : [right, left];
  if (call.kind !== "call" || call.name !== "auth.role") return null;
  if (name.kind !== "constant" || (sign !== "=" && sign !== "<>")) return refuse("auth.role()");
  const isThis = (role: Caller): boolean => (name.value === role) === (sign === "=");
  return onlyFor(CALLERS.filter(isThis));
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
