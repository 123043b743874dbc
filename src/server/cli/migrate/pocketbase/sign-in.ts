import type { Remarks } from "../remarks.ts";
import type { KeptOut } from "./accounts.ts";
import { type PbCollection, ruleOption } from "./collections.ts";
import { type Comparison, type Expression, type Operand, parseFilter } from "./filter/parser.ts";
import { FilterError } from "./filter/tokens.ts";
import type { MovePlan } from "./plan.ts";

type Row = Readonly<Record<string, unknown>>;
type Asked = (row: Row) => boolean;

/** The rules that say which accounts may sign in. */
export interface SignInRules {
  /** Whether the main collection asks for a verified address. */
  requiresVerified: boolean;
  /** Whether it asks for more, which a new account does not have by itself. */
  asksMore: boolean;
  isKeptOut: KeptOut;
}

const isVerifiedAsked = (expression: Expression): boolean =>
  expression.kind === "comparison" &&
  expression.operator === "=" &&
  JSON.stringify([expression.left, expression.right]) === VERIFIED;

const VERIFIED = JSON.stringify([
  { kind: "identifier", text: "verified" },
  { kind: "identifier", text: "true" },
]);

/** Reads the authRule of each auth collection. One that is not understood keeps all accounts out. */
export function signInRules(plan: MovePlan, remarks: Remarks): SignInRules {
  const asked = new Map<string, Asked>();
  let requiresVerified = false;
  let asksMore = false;
  for (const { collection, kind } of plan.tables.filter((table) => table.kind !== "records")) {
    const rule = ruleOption(collection.options, "authRule");
    const parts = partsOf(collection, rule, remarks);
    const isMain = kind === "users";
    const others = parts.filter((part) => part === null || !isVerifiedAsked(part));
    if (isMain) {
      requiresVerified = others.length < parts.length;
      asksMore = others.length > 0;
      if (asksMore)
        remarks.look(collection.name, `nobody signs up here, as the authRule asks for more: ${rule ?? "superusers"}`);
    }
    const predicates = (isMain ? others : parts).map((part) => predicateOf(part, collection, remarks));
    asked.set(collection.id, (row) => predicates.every((holds) => holds(row)));
  }
  return { requiresVerified, asksMore, isKeptOut: ({ id }, row) => asked.get(id)?.(row) !== true };
}

/** Returns what a rule asks together; null for what is not understood. */
function partsOf({ name }: PbCollection, rule: string | null, remarks: Remarks): (Expression | null)[] {
  if (rule === null) {
    remarks.look(name, "all accounts are disabled, as the authRule lets nobody in");
    return [null];
  }
  if (rule.trim() === "") return [];
  try {
    const expression = parseFilter(rule);
    return expression.kind === "and" ? [...expression.parts] : [expression];
  } catch (cause) {
    if (!(cause instanceof FilterError)) throw cause;
    remarks.look(name, `all accounts are disabled, as the authRule is not understood: ${rule}`);
    return [null];
  }
}

function predicateOf(expression: Expression | null, collection: PbCollection, remarks: Remarks): Asked {
  if (expression === null) return () => false;
  if (expression.kind === "comparison") return comparisonOf(expression, collection, remarks);
  const parts = expression.parts.map((part) => predicateOf(part, collection, remarks));
  return expression.kind === "and"
    ? (row) => parts.every((holds) => holds(row))
    : (row) => parts.some((holds) => holds(row));
}

/** Compares a field of the account with a constant; anything else holds for nobody. */
function comparisonOf({ left, operator, right }: Comparison, { name, fields }: PbCollection, remarks: Remarks): Asked {
  const field = left.kind === "identifier" ? fields.find((one) => one.name === left.text) : undefined;
  const constant = constantOf(right);
  const isPlain = field !== undefined && ["text", "email", "url", "number", "bool"].includes(field.type);
  if (!isPlain || constant === undefined) {
    remarks.look(name, "some accounts may be disabled, as a part of the authRule is not understood");
    return () => false;
  }
  const storedIn = (row: Row): string | number => {
    const value = row[field.name];
    return typeof value === "number" ? value : String(value ?? "");
  };
  switch (operator) {
    case "=":
      return (row) => storedIn(row) === constant;
    case "!=":
      return (row) => storedIn(row) !== constant;
    case ">":
      return (row) => typeof constant === "number" && Number(storedIn(row)) > constant;
    case ">=":
      return (row) => typeof constant === "number" && Number(storedIn(row)) >= constant;
    case "<":
      return (row) => typeof constant === "number" && Number(storedIn(row)) < constant;
    case "<=":
      return (row) => typeof constant === "number" && Number(storedIn(row)) <= constant;
    case "~":
    case "!~":
      remarks.look(name, "some accounts may be disabled, as a part of the authRule is not understood");
      return () => false;
    default:
      return operator satisfies never;
  }
}

function constantOf(operand: Operand): string | number | undefined {
  if (operand.kind === "number") return operand.value;
  if (operand.kind === "text") return operand.text;
  if (operand.kind === "call") return undefined;
  // SQLite stores booleans as numbers.
  return { true: 1, false: 0, null: "" }[operand.text];
}
