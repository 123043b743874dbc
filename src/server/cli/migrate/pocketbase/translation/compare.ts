import {
  type CodeValue,
  type Condition,
  FALSE,
  type Formula,
  join,
  literal,
  negated,
  ofSameRecord,
  type Step,
  TRUE,
} from "../../rules/formula.ts";
import { textsOption } from "../collections.ts";
import type { Comparison, Operator } from "../filter/parser.ts";
import { FilterError } from "../filter/tokens.ts";
import { type FieldTerm, hasEvenIds, lowerCode, type RulePlace, type Term, termOf } from "./terms.ts";

type DistanceTerm = Extract<Term, { kind: "distance" }>;
type ValueTerm = Extract<Term, { kind: "value" }>;

/** A comparison here, and whether PocketBase finds it true for callers without a token where values are empty. */
export interface Compared {
  formula: Formula;
  isTrap: boolean;
}

const MIRRORED: Readonly<Record<Operator, Operator | null>> = {
  "=": "=",
  "!=": "!=",
  ">": "<",
  ">=": "<=",
  "<": ">",
  "<=": ">=",
  "~": null,
  "!~": null,
};
const OPERATORS: Readonly<Record<string, string>> = {
  "=": "==",
  "!=": "!=",
  ">": ">",
  ">=": ">=",
  "<": "<",
  "<=": "<=",
};

const SIGNS: Readonly<Record<string, string>> = { ...OPERATORS, "=": "===", "!=": "!==" };

const METERS = 1000;

const refuse = (why: string): never => {
  throw new FilterError(why);
};

/** Translates a comparison into one that is as strict or stricter. Errors: FilterError. */
export function compare(comparison: Comparison, place: RulePlace): Compared {
  const [left, right] = [termOf(comparison.left, place), termOf(comparison.right, place)];
  const { operator, isAny } = comparison;
  const mirrored = MIRRORED[operator];
  if (left.kind === "distance") return { formula: distanceFormula(left, operator, right), isTrap: false };
  if (right.kind === "distance") {
    return { formula: distanceFormula(right, mirrored ?? operator, left), isTrap: false };
  }
  if (left.kind === "value" || left.kind === "list") {
    if (right.kind === "value")
      return { formula: valueFormula(left, operator, right), isTrap: isTrapped(left, right, operator) };
    if (mirrored === null) return refuse("a value is compared with a field by ~");
    return sided(right, mirrored, isAny, left, place);
  }
  return sided(left, operator, isAny, right, place);
}

function sided(left: Term, operator: Operator, isAny: boolean, right: Term, place: RulePlace): Compared {
  const { formula, isTrap } = plainlySided(left, operator, isAny, right, place);
  return { formula: join("and", [formula, ...ofMain(left, right, place)]), isTrap };
}

/**
 * Returns what keeps an account of another collection from making a record of its own: there its id is none that a reference to the
 * main collection takes.
 */
function ofMain(left: Term, right: Term, { plan, action }: RulePlace): Formula[] {
  const field =
    left.kind === "field" && left.steps.length === 0 ? left.source : left.kind === "sent" ? left.field : null;
  const isWritten = action === "insert" || (action === "update" && left.kind === "sent");
  const isCaller = right.kind === "value" && right.value.code === "auth.id";
  if (!isWritten || !isCaller || field === null || field.target !== plan.users?.name) return [];
  const others = plan.tables.filter(({ kind }) => kind === "accounts");
  return others.map(({ name }) => code(`auth.role !== ${literal(name).code}`, ["auth"]));
}

function plainlySided(left: Term, operator: Operator, isAny: boolean, right: Term, place: RulePlace): Compared {
  const isTrap = isTrapped(left, right, operator);
  if (left.kind === "collection") return { formula: callerFormula(left.what, operator, right, place), isTrap: false };
  if (left.kind === "sent") return { formula: sentFormula(left, operator, right, place), isTrap };
  if (left.kind !== "field") return refuse("two lists are compared");
  if (left.asked === "length") return { formula: lengthFormula(left, operator, right), isTrap };
  if (left.asked === "lower" || (right.kind === "field" && right.asked === "lower")) {
    // There `~` compares without case anyway.
    if (operator !== "~") return { formula: lowerFormula(left, operator, right), isTrap };
  }
  if (right.kind === "field" && right.asked !== "value") return refuse("two fields are compared");
  return { formula: fieldFormula(left, { operator, isAny }, right, place), isTrap };
}

/** Whether PocketBase compares the missing caller with a value that may be empty. */
function isTrapped(left: Term, right: Term, operator: Operator): boolean {
  const isCaller = (term: Term): boolean => "value" in term && term.value.needs.length > 0;
  const hasCaller = isCaller(left) || isCaller(right);
  const isOpen = (term: Term): boolean =>
    term.kind === "field" && (term.mayBeEmpty || term.steps.some(({ isMany }) => isMany));
  const isPlain = (term: Term): boolean => term.kind === "value" && term.type === "empty";
  if (!hasCaller) return false;
  if (operator === "!=" || operator === "!~") return !(isPlain(left) || isPlain(right));
  return isOpen(left) || isOpen(right) || ((isPlain(left) || isPlain(right)) && operator === "=");
}

/** Compares a distance: the earth is larger here by 1.4 in a million, so that what is near enough here is so there. */
function distanceFormula({ from, lat, lng }: DistanceTerm, operator: Operator, right: Term): Formula {
  const isNear = operator === "<" || operator === "<=";
  if (!isNear || right.kind !== "value" || typeof right.literal !== "number" || right.literal <= 0) {
    return refuse("a distance is compared in another way than by < with a number");
  }
  const value = literal(0);
  const code = `{ lat: ${lat}, lng: ${lng}, meters: ${right.literal * METERS} }`;
  return wrapped(from.steps, { kind: "condition", field: from.name, operator: "within", value: { ...value, code } });
}

/**
 * Compares the number of values of a list. References to records and files that are not there are not moved: a list of them may only
 * be asked to be longer.
 */
function lengthFormula({ name, type }: FieldTerm, operator: Operator, right: Term): Formula {
  const sign = SIGNS[operator];
  if (right.kind !== "value" || right.type !== "number" || sign === undefined) {
    return refuse("a length is compared with no number");
  }
  const isLonger = operator === ">" || operator === ">=" || (operator === "!=" && right.literal === 0);
  if (type !== "choices" && !isLonger) return refuse("a list of references or files is asked to be short");
  const list = `record.${name}`;
  // The type of the field is any JSON; its schema allows lists alone.
  const length = type === "choices" ? `(Array.isArray(${list}) ? ${list}.length : 0)` : `${list}.length`;
  return code(`${length} ${sign} ${right.value.code}`, right.value.needs);
}

/** Compares texts of the record at hand without the case of A–Z, by code. */
function lowerFormula(left: FieldTerm, operator: Operator, right: Term): Formula {
  if (operator !== "=" && operator !== "!=") return refuse("a text in lower case is compared by its order");
  const sides = [left, right].map((term): CodeValue => {
    if (term.kind === "field" && term.type === "text" && term.steps.length === 0) {
      const text = `record.${term.name}`;
      const plain = term.source?.isNullable === true ? `(${text} ?? "")` : text;
      return { code: term.asked === "lower" ? lowerCode(text) : plain, needs: [] };
    }
    if (term.kind !== "value") return refuse("a text in lower case is compared with no text");
    if (term.type === "empty") return literal("");
    return term.type === "text" ? term.value : refuse("values of several types are compared");
  });
  const needs = sides.flatMap((side) => side.needs);
  return code(sides.map((side) => side.code).join(` ${SIGNS[operator]} `), needs);
}

/** Compares two values that need no record: the caller, and constants. */
function valueFormula(left: Term & { kind: "value" | "list" }, operator: Operator, right: ValueTerm): Formula {
  const sign = SIGNS[operator];
  if (left.kind === "list" || sign === undefined) return refuse("such values are compared");
  const needs = [...left.value.needs, ...right.value.needs];
  const isSet = operator === "!=";
  const isOrder = operator !== "=" && operator !== "!=";
  if (isOrder && (left.type !== "number" || right.type !== "number")) return refuse("such values are compared");
  if (right.type === "empty" || left.type === "empty") {
    const term = right.type === "empty" ? left : right;
    // An id and an address are never empty.
    if (term.value.code === "auth.id" || term.value.code === "auth.email") return isSet ? code("true", needs) : FALSE;
    if (term.type !== "text") return refuse("a value that is no text is compared with none");
    return code(isSet ? `!!${term.value.code}` : `!${term.value.code}`, needs);
  }
  if (left.type !== right.type || left.type === "time") return refuse("values of several types are compared");
  if (left.literal !== undefined && right.literal !== undefined) {
    if (isOrder) return refuse("two numbers are compared");
    return (left.literal === right.literal) === (operator === "=") ? TRUE : FALSE;
  }
  return code(booleanCode(left.value.code, sign, right.value.code), needs);
}

const code = (text: string, needs: readonly CodeValue["needs"][number][]): Formula => ({
  kind: "code",
  code: text,
  needs: [...new Set(needs)],
});

/** Writes `x === true` as `x`. */
const booleanCode = (left: string, sign: string, right: string): string => {
  if (right !== "true" && right !== "false") return `${left} ${sign} ${right}`;
  return (right === "true") === (sign === "===") ? left : `!${left}`;
};

/** Compares the collection of the caller with a name. */
function callerFormula(what: "name" | "id", operator: Operator, right: Term, { plan }: RulePlace): Formula {
  const isEqual = operator === "=";
  if (right.kind !== "value" || typeof right.literal !== "string" || (!isEqual && operator !== "!=")) {
    return refuse("the caller's collection is compared with no name");
  }
  const accounts = plan.tables.filter(({ kind }) => kind !== "records");
  const table = accounts.find(
    ({ collection }) => (what === "name" ? collection.name : collection.id) === right.literal,
  );
  if (table === undefined) return isEqual ? FALSE : refuse("the caller's collection is compared with another one");
  if (table.kind === "accounts") {
    return code(`auth.role ${isEqual ? "===" : "!=="} ${literal(table.name).code}`, ["auth"]);
  }
  const others = accounts
    .filter((one) => one !== table)
    .map(({ name }) => `auth.role ${isEqual ? "!==" : "==="} ${literal(name).code}`);
  if (others.length === 0) return isEqual ? code("true", ["auth"]) : FALSE;
  return join(
    isEqual ? "and" : "or",
    others.map((text) => code(text, ["auth"])),
  );
}

/** Compares what a request sends. */
function sentFormula(
  { name, field, asked }: Extract<Term, { kind: "sent" }>,
  operator: Operator,
  right: Term,
  { action }: RulePlace,
): Formula {
  if (right.kind !== "value") return refuse("what is sent is compared with a field");
  const isSent = `sent?.includes(${literal(name).code}) === true`;
  const isUnsent = `sent?.includes(${literal(name).code}) === false`;
  const record = action === "insert" ? "record" : "next";
  if (asked === "isset" || asked === "changed") {
    if (typeof right.literal !== "boolean" || (operator !== "=" && operator !== "!="))
      return refuse("a modifier is compared with no boolean");
    const isWanted = right.literal === (operator === "=");
    if (field === null) return isWanted ? FALSE : TRUE;
    if (asked === "isset") return code(isWanted ? isSent : isUnsent, []);
    if (action !== "update" || !["text", "number", "boolean", "choice", "reference", "datetime"].includes(field.kind)) {
      return refuse(":changed is asked of such a field");
    }
    return code(`next.${name} ${isWanted ? "!==" : "==="} record.${name}`, []);
  }
  if (field === null) return refuse("what is sent is unknown");
  const { needs } = right.value;
  if (asked === "length") {
    const sign = SIGNS[operator];
    if (right.type !== "number" || sign === undefined) return refuse("a length is compared with no number");
    if (field.kind !== "references" && field.kind !== "files") return refuse("the length of such a field is asked");
    return code(`${isSent} && ${record}.${name}.length ${sign} ${right.value.code}`, needs);
  }
  const value = sentValue(field.kind, right);
  const stored = asked === "lower" ? lowerCode(`${record}.${name}`) : `${record}.${name}`;
  if (operator === "=") {
    const equal = booleanCode(stored, "===", value);
    return right.type === "empty"
      ? code(`${record}.${name} === ${value}`, needs)
      : code(`${isSent} && ${equal}`, needs);
  }
  if (operator === "!=") {
    const different = booleanCode(stored, "!==", value);
    return right.type === "empty"
      ? code(`${isSent} && ${different}`, needs)
      : join("or", [code(isUnsent, needs), code(different, needs)]);
  }
  const sign = OPERATORS[operator];
  if (sign === undefined || right.type !== "number" || field.kind !== "number")
    return refuse("such values are compared");
  return code(`${isSent} && ${record}.${name} ${sign} ${value}`, needs);
}

/** Returns the code of a value in the form that a field has here. */
function sentValue(kind: string, { type, value }: ValueTerm): string {
  const takes: Readonly<Record<string, string>> = {
    text: "text",
    choice: "text",
    reference: "text",
    number: "number",
    boolean: "boolean",
  };
  if (takes[kind] === undefined) return refuse("what is sent is of a type that is not compared");
  if (type !== "empty") return takes[kind] === type ? value.code : refuse("values of several types are compared");
  if (kind === "text") return '""';
  return kind === "choice" || kind === "reference" ? "null" : refuse("such a value is never empty");
}

interface Sign {
  operator: Operator;
  isAny: boolean;
}

/** Compares a field of the record, or of a related one. */
function fieldFormula(left: FieldTerm, sign: Sign, right: Term, place: RulePlace): Formula {
  if (right.kind === "field") return fieldsFormula(left, sign, right, place);
  if (right.kind === "list") {
    const isOne = ["id", "reference", "text", "choice"].includes(left.type) && sign.operator === "=" && sign.isAny;
    if (!isOne) return refuse("a list of the caller is compared in another way than by ?=");
    return wrapped(left.steps, { kind: "condition", field: left.name, operator: "in", value: right.value });
  }
  if (right.kind !== "value") return refuse("a field is compared with what is sent");
  const { condition, isPositive, isNeverEmpty } = conditionOf(left, sign, right, place);
  const isMany = left.steps.some((step) => step.isMany);
  if (!isMany) {
    // Where no record is related, PocketBase compares with an empty value, and the relation here finds none.
    return wrapped(left.steps, isPositive ? condition : negated(condition));
  }
  if (sign.isAny) return wrapped(left.steps, isPositive ? condition : negated(condition));
  if (!isPositive)
    return isNeverEmpty ? none(left.steps, condition) : refuse("every related value is compared with none");
  return join("and", [wrapped(left.steps, condition), none(left.steps, negated(condition))]);
}

const wrapped = (steps: readonly Step[], inner: Formula): Formula =>
  steps.reduceRight<Formula>((formula, step) => ({ kind: "some", step, inner: formula }), inner);

function none([first, ...rest]: readonly Step[], inner: Formula): Formula {
  if (first === undefined) return refuse("a relation is missing");
  return { kind: "none", step: first, inner: wrapped(rest, inner) };
}

/** Compares a field of a related record with one of the record at hand. */
function fieldsFormula(left: FieldTerm, sign: Sign, right: FieldTerm, place: RulePlace): Formula {
  if (left.steps.length === 0 && right.steps.length === 0) return ownFieldsFormula(left, sign.operator, right, place);
  const [inner, outer] = left.steps.length > 0 ? [left, right] : [right, left];
  const isOneStep = inner.steps.length === 1 && outer.steps.length === 0;
  const textual = ["id", "reference", "text", "choice"];
  const isText = textual.includes(inner.type) && textual.includes(outer.type);
  if (!isOneStep || !isText || sign.operator !== "=") return refuse("two fields are compared");
  const condition: Condition = { kind: "condition", field: inner.name, operator: "==", value: { outer: outer.name } };
  const isMany = inner.steps.some((step) => step.isMany);
  if (sign.isAny || !isMany) return wrapped(inner.steps, condition);
  return join("and", [wrapped(inner.steps, condition), none(inner.steps, negated(condition))]);
}

/** Compares two fields of the record at hand. */
function ownFieldsFormula(
  left: FieldTerm,
  operator: Operator,
  right: FieldTerm,
  { table, action }: RulePlace,
): Formula {
  const isText = (type: string): boolean => type === "id" || type === "text" || type === "reference";
  const isAlike = left.type === right.type || (isText(left.type) && isText(right.type));
  const isEqual = operator === "=" || operator === "!=";
  const isComparable = isText(left.type) || ["number", "boolean", "datetime"].includes(left.type);
  const sign = OPERATORS[operator];
  if (!isAlike || !isComparable || sign === undefined) return refuse("two fields are compared");
  if (!isEqual && left.type !== "number") return refuse("two fields are compared by their order");
  // Where one has no value here, PocketBase compares an empty text: the comparison is false.
  const open = [left, right].filter(({ source }) => source?.isNullable === true);
  if (action !== "insert") {
    const isThere = open.map(({ name }) =>
      negated({ kind: "condition", field: name, operator: "==", value: literal(null) }),
    );
    return join("and", [...isThere, ofSameRecord(table.name, left.name, sign, right.name)]);
  }
  const isThere = open.map(({ name }) => `record.${name} !== null && `).join("");
  return code(`${isThere}record.${left.name} ${SIGNS[operator]} record.${right.name}`, []);
}

interface Chosen {
  condition: Condition;
  /** Whether the condition is asked, and not its contrary. */
  isPositive: boolean;
  /** Whether the value that is compared with is known to be none. */
  isNeverEmpty: boolean;
}

/** Chooses the condition for a field and a value. Errors: FilterError for pairs that have none. */
function conditionOf(left: FieldTerm, { operator, isAny }: Sign, right: ValueTerm, place: RulePlace): Chosen {
  const isPositive = operator !== "!=" && operator !== "!~";
  const isNeverEmpty = right.type !== "empty" && (right.literal !== undefined || right.value.code === "auth.id");
  const chosen = (sign: string, value: CodeValue = right.value): Chosen => ({
    condition: { kind: "condition", field: left.name, operator: sign, value, isChoice: left.type === "choice" },
    isPositive,
    isNeverEmpty,
  });
  if (left.type === "references" || left.type === "choices")
    return chosen(listSign(left, { operator, isAny }, right, place));
  if (operator === "~" || operator === "!~") return chosen(textSign(left, operator, right));
  const sign = isPositive ? OPERATORS[operator] : "==";
  if (sign === undefined) return refuse("such values are compared");
  return chosen(sign, plainValue(left, sign, right));
}

/** Returns the value in the form that the field has here. */
function plainValue(
  { type, source }: FieldTerm,
  sign: string,
  { type: given, value, literal: known }: ValueTerm,
): CodeValue {
  const isEqual = sign === "==";
  if (given === "empty") {
    if (!isEqual) return refuse("a value is compared with none by order");
    if (type === "text") return literal(source?.isNullable === true ? null : "");
    return ["choice", "reference", "datetime", "file"].includes(type)
      ? literal(null)
      : refuse("such a value is never empty");
  }
  if (type === "datetime") {
    if (given === "time") return value;
    const instant = typeof known === "string" ? instantIn(known) : null;
    return instant === null ? refuse("a time is compared with no time") : literal(instant);
  }
  if (type === "number" && given === "number") return value;
  if (type === "boolean" && given === "boolean" && isEqual) return value;
  const isText = ["id", "text", "choice", "reference"].includes(type) && given === "text" && isEqual;
  return isText ? value : refuse("values of several types are compared");
}

const instantIn = (text: string): string | null => {
  const full = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text} 00:00:00.000Z` : text;
  const time = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?Z$/.test(full)
    ? Date.parse(full.replace(" ", "T"))
    : Number.NaN;
  return Number.isNaN(time) ? null : new Date(time).toISOString();
};

/** Chooses how a text contains another one: SQLite compares the letters A-Z without case there and here. */
function textSign({ type, steps }: FieldTerm, operator: Operator, right: ValueTerm): string {
  const isId = right.value.code === "auth.id";
  const isPlain = typeof right.literal === "string" && !right.literal.includes("%");
  if (type === "reference" && operator === "~" && isId) return "==";
  if (operator === "!~" && steps.length > 0) return refuse("a related text is asked not to contain another one");
  return type === "text" && (isPlain || isId) ? "icontains" : refuse("a value is compared by ~");
}

/** Chooses how a list has a value. PocketBase compares the text of the whole list, or with `:each` its values. */
function listSign(
  { type, isEach, source }: FieldTerm,
  { operator, isAny }: Sign,
  right: ValueTerm,
  place: RulePlace,
): string {
  const has = type === "references" ? "has" : "contains";
  const isValue = right.type === "text" && (right.literal !== undefined || right.value.code === "auth.id");
  if (!isValue) return refuse("a list is compared with no value");
  if (isEach) {
    const isOne = isAny && (operator === "=" || operator === "~");
    // Every value is another one: also where there is none.
    const isNone = !isAny && operator === "!=";
    return isOne || isNone ? has : refuse("every value of a list is compared");
  }
  if (operator === "~") return has;
  const others = type === "choices" && source !== null ? textsOption(source.source.options, "values") : [];
  const target = place.plan.tables.find(({ name }) => name === source?.target);
  const isExact =
    type === "choices"
      ? others.includes(String(right.literal)) &&
        others.every((one) => one === right.literal || !contains(one, String(right.literal)))
      : right.value.code === "auth.id" && target !== undefined && hasEvenIds(target.collection);
  return operator === "!~" && !isAny && isExact ? has : refuse("a list is compared as a whole");
}

const contains = (text: string, part: string): boolean => text.toLowerCase().includes(part.toLowerCase());
