import { quoted } from "../code.ts";

/** Facts about the caller without which a part of a rule is false. `me`: the caller's record. */
export type Need = "auth" | "email" | "me";

/** A value in the code of a rule. */
export interface CodeValue {
  code: string;
  needs: readonly Need[];
}

/** A relation of a record to those of a table. */
export interface Step {
  /** Names it: there, conditions about one path are about one and the same related record. */
  alias: string;
  table: string;
  /** Whether there may be several such records. */
  isMany: boolean;
  /** The condition that relates the records; null: all records of the table. */
  link: Condition | null;
}

/** A condition on a field of the record at hand. `outer`: the value is a field of the record around it. */
export interface Condition {
  kind: "condition";
  field: string;
  operator: string;
  value: CodeValue | { outer: string };
  /** Whether the field takes certain texts alone. */
  isChoice?: boolean;
}

/** The question that a rule asks. Each part is as strict as the original or stricter, and nothing is negated but what says so. */
export type Formula =
  | { kind: "constant"; isTrue: boolean }
  | { kind: "code"; code: string; needs: readonly Need[] }
  | Condition
  | { kind: "not"; condition: Condition }
  | { kind: "and" | "or"; parts: readonly Formula[] }
  | { kind: "some" | "none"; step: Step; inner: Formula };

export const TRUE: Formula = { kind: "constant", isTrue: true };
export const FALSE: Formula = { kind: "constant", isTrue: false };

export const isConstant = (formula: Formula, isTrue: boolean): boolean =>
  formula.kind === "constant" && formula.isTrue === isTrue;

export const literal = (value: string | number | boolean | null): CodeValue => ({
  code: typeof value === "string" ? quoted(value) : String(value),
  needs: [],
});

const NEGATED: Readonly<Record<string, string>> = { "==": "!=", "!=": "==" };

/** Compares a field of a record with another one of it: by the record of its id. A null equals nothing, and is different. */
export const ofSameRecord = (table: string, field: string, operator: string, other: string): Formula => ({
  kind: "some",
  step: {
    alias: ":itself",
    table,
    isMany: false,
    link: { kind: "condition", field: "id", operator: "==", value: { outer: "id" } },
  },
  inner: { kind: "condition", field, operator, value: { outer: other } },
});

/** Returns the condition that holds for exactly the other records. */
export function negated(condition: Condition): Formula {
  const operator = NEGATED[condition.operator];
  const isComparedField = "outer" in condition.value;
  return operator === undefined || isComparedField ? { kind: "not", condition } : { ...condition, operator };
}

/** Joins parts, without those that decide nothing. */
export function join(kind: "and" | "or", parts: readonly Formula[]): Formula {
  const decisive = kind === "or";
  const flat = parts.flatMap((part) => (part.kind === kind ? part.parts : [part]));
  if (flat.some((part) => isConstant(part, decisive))) return decisive ? TRUE : FALSE;
  const left = flat.filter((part) => part.kind !== "constant");
  const different = [...new Map(left.map((part) => [JSON.stringify(part), part])).values()];
  const [only] = different;
  if (only === undefined) return decisive ? FALSE : TRUE;
  return different.length === 1 ? only : { kind, parts: different };
}

/** Returns the same formula without what another part of it decides: `a and (a or b)` is `a`, and so is `a or (a and b)`. */
export function absorbed(formula: Formula): Formula {
  if (formula.kind === "some" || formula.kind === "none") return { ...formula, inner: absorbed(formula.inner) };
  if (formula.kind !== "and" && formula.kind !== "or") return formula;
  const joined = join(formula.kind, formula.parts.map(absorbed));
  if (joined.kind !== "and" && joined.kind !== "or") return joined;
  const texts = new Set(joined.parts.map((part) => JSON.stringify(part)));
  const other = joined.kind === "and" ? "or" : "and";
  const isDecided = (part: Formula): boolean =>
    part.kind === other && part.parts.some((one) => texts.has(JSON.stringify(one)));
  return join(
    joined.kind,
    joined.parts.filter((part) => !isDecided(part)),
  );
}

/** Returns the formula where some facts are missing: parts that need them are false. */
export function without(formula: Formula, missing: ReadonlySet<Need>): Formula {
  const lacks = (needs: readonly Need[]): boolean => needs.some((need) => missing.has(need));
  const lacksValue = ({ value }: Condition): boolean => "needs" in value && lacks(value.needs);
  switch (formula.kind) {
    case "constant":
      return formula;
    case "code":
      return lacks(formula.needs) ? FALSE : formula;
    case "condition":
      return lacksValue(formula) ? FALSE : formula;
    case "not":
      return lacksValue(formula.condition) ? FALSE : formula;
    case "and":
    case "or":
      return join(
        formula.kind,
        formula.parts.map((part) => without(part, missing)),
      );
    case "some":
    case "none":
      return needsOf(formula).some((need) => missing.has(need)) && formula.kind === "none"
        ? FALSE
        : related(formula.kind, formula.step, without(formula.inner, missing), lacks);
    default:
      return formula satisfies never;
  }
}

function related(
  kind: "some" | "none",
  step: Step,
  inner: Formula,
  lacks: (needs: readonly Need[]) => boolean,
): Formula {
  const { link } = step;
  const isUnlinked = link !== null && "needs" in link.value && lacks(link.value.needs);
  if (isUnlinked || isConstant(inner, false)) return kind === "some" ? FALSE : isUnlinked ? FALSE : TRUE;
  return { kind, step, inner };
}

/** Returns all that the formula needs to know of the caller. */
export function needsOf(formula: Formula): readonly Need[] {
  switch (formula.kind) {
    case "constant":
      return [];
    case "code":
      return formula.needs;
    case "condition":
      return "needs" in formula.value ? formula.value.needs : [];
    case "not":
      return needsOf(formula.condition);
    case "and":
    case "or":
      return formula.parts.flatMap(needsOf);
    case "some":
    case "none":
      return [...(formula.step.link === null ? [] : needsOf(formula.step.link)), ...needsOf(formula.inner)];
    default:
      return formula satisfies never;
  }
}

/** Tells of a part that was left out. */
export type Tell = (why: string) => void;

/**
 * Joins the conditions about one related record: there, all that a rule says of one path is about one and the same record, so that
 * apart they would allow more. What cannot be joined is false.
 */
export function joinRelated(formula: Formula, tell: Tell, spread = SPREADS_MAX): Formula {
  if (formula.kind === "some" || formula.kind === "none") {
    const inner = joinRelated(formula.inner, tell, spread);
    return related(formula.kind, formula.step, inner, () => false);
  }
  if (formula.kind !== "and" && formula.kind !== "or") return formula;
  const merged = mergeSame(formula.kind, formula.parts);
  const group = formula.kind === "and" ? sharingGroup(merged) : null;
  if (group !== null && spread > 0) {
    // `a and (b or c)` is `a and b, or a and c`, where each part is about one record again.
    const others = merged.filter((part) => part !== group);
    return joinRelated(
      join(
        "or",
        group.parts.map((part) => join("and", [...others, part])),
      ),
      tell,
      spread - 1,
    );
  }
  const parts = merged.map((part) => joinRelated(part, tell, spread));
  return join(formula.kind, formula.kind === "or" ? parts : withoutShared(parts, tell));
}

/** Groups that are spread over the parts beside them, at most: each doubles what there is. */
const SPREADS_MAX = 3;

/** Returns a group of several choices that is about the same related record as a part beside it; null: there is none. */
function sharingGroup(parts: readonly Formula[]): Extract<Formula, { kind: "and" | "or" }> | null {
  const shared = sharedAliases(parts);
  for (const part of parts) {
    if (part.kind === "or" && manyAliases(part).some((alias) => shared.has(alias))) return part;
  }
  return null;
}

function sharedAliases(parts: readonly Formula[]): Set<string> {
  const all = parts.flatMap((part) => [...new Set(manyAliases(part))]);
  return new Set(all.filter((alias, index) => all.indexOf(alias) !== index));
}

/** Makes one relation of those to the same record. */
function mergeSame(kind: "and" | "or", parts: readonly Formula[]): Formula[] {
  const steps = new Map<string, { step: Step; inner: Formula[] }>();
  const others: Formula[] = [];
  for (const raw of parts) {
    // A group of relations to one record is such a relation.
    const part = raw.kind === "or" || raw.kind === "and" ? join(raw.kind, mergeSame(raw.kind, raw.parts)) : raw;
    if (part.kind !== "some") {
      others.push(part);
      continue;
    }
    const known = steps.get(part.step.alias) ?? { step: part.step, inner: [] };
    known.inner.push(part.inner);
    steps.set(part.step.alias, known);
  }
  return [
    ...others,
    ...[...steps.values()].map(({ step, inner }): Formula => ({ kind: "some", step, inner: join(kind, inner) })),
  ];
}

function withoutShared(parts: readonly Formula[], tell: Tell): Formula[] {
  const shared = sharedAliases(parts);
  return parts.map((part) => {
    if (!manyAliases(part).some((alias) => shared.has(alias))) return part;
    tell("several groups are about one and the same related record");
    return FALSE;
  });
}

function manyAliases(formula: Formula): string[] {
  if (formula.kind === "and" || formula.kind === "or") return formula.parts.flatMap(manyAliases);
  if (formula.kind !== "some") return [];
  return [...(formula.step.isMany ? [formula.step.alias] : []), ...manyAliases(formula.inner)];
}
