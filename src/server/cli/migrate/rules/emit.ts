import { arrayCode, type Code, callCode, quoted } from "../code.ts";
import {
  type CodeValue,
  type Condition,
  type Formula,
  isConstant,
  join,
  type Need,
  needsOf,
  TRUE,
  without,
} from "./formula.ts";

/** The code of a rule, and of the record of the caller that it looks up. */
export interface EmitOptions {
  action: "read" | "insert" | "update" | "delete" | "file";
  /** The lookup of the caller's record. */
  meCode: string;
}

const WIDEST_PARAMETERS: Readonly<Record<EmitOptions["action"], readonly string[]>> = {
  read: ["auth", "record"],
  insert: ["auth", "record"],
  update: ["auth", "record", "next"],
  delete: ["auth", "record"],
  file: ["auth", "file"],
};

/** Returns a rule's code: `true`, or a function; null: it allows nothing. */
export function ruleCode(formula: Formula, options: EmitOptions): Code | null {
  if (isConstant(formula, false)) return null;
  if (isConstant(formula, true)) return "true";
  const needs = needsOf(formula);
  const body = needs.includes("me") ? blockCode(formula, options) : expressionCode(formula);
  return [parametersCode(body, needs, options), " => ", body];
}

/** Returns the parameters up to the last one that the body uses. */
function parametersCode(body: Code, needs: readonly Need[], { action }: EmitOptions): string {
  const text = textOf(body);
  const isUsed = (name: string): boolean => new RegExp(`(?<![.\\w"])${name}\\b(?!["(])`).test(text);
  const context = ["sent", "table"].filter((name) =>
    name === "table" ? /(?<![.\w])table\(/.test(text) : isUsed(name),
  );
  const named = WIDEST_PARAMETERS[action].map((name) => ({
    name,
    used: name === "auth" ? needs.length > 0 || isUsed(name) : isUsed(name),
  }));
  const last = named.findLastIndex(({ used }) => used);
  const kept = context.length > 0 ? named : named.slice(0, last + 1);
  const names = kept.map(({ name, used }) => (used ? name : `_${name}`));
  return `(${[...names, ...(context.length > 0 ? [`{ ${context.join(", ")} }`] : [])].join(", ")})`;
}

/** Returns source text on one line, to look for names in it. */
function textOf(code: Code): string {
  if (typeof code === "string") return code;
  if ("items" in code) return code.open + code.items.map((item) => textOf(item.code)).join(", ") + code.close;
  return code.map(textOf).join("");
}

const NOBODY: ReadonlySet<Need> = new Set<Need>(["auth", "email", "me"]);

/** Returns the body of a rule that looks the caller's record up. */
function blockCode(formula: Formula, { meCode }: EmitOptions): Code {
  const forUnknown = without(formula, new Set<Need>(["me"]));
  const last = isConstant(forUnknown, false)
    ? guarded("me !== null", formula)
    : ["me === null ? ", emailCode(settled(forUnknown)), " : ", emailCode(settled(formula))];
  const statements: Code[] = [
    ["if (auth === null) return ", emailCode(without(formula, NOBODY))],
    `const me = ${meCode}`,
    ["return ", last],
  ];
  return { open: "{", close: "}", items: statements.map((code) => ({ code })), isBroken: true, end: ";" };
}

/** Returns an expression that is false for callers whom the formula does not allow. */
function expressionCode(formula: Formula): Code {
  if (!needsOf(formula).includes("auth")) return emailCode(formula);
  const forNobody = without(formula, NOBODY);
  if (isConstant(forNobody, false)) return guarded("auth !== null", formula);
  return ["auth === null ? ", emailCode(forNobody), " : ", emailCode(settled(formula))];
}

/** Puts a condition before a formula that is false without it. */
function guarded(guard: string, formula: Formula): Code {
  const rest = settled(formula);
  if (isConstant(rest, true)) return guard;
  const code = emailCode(rest);
  const isLoose = needsOf(rest).includes("email") || isLooseOr(rest);
  return [`${guard} && `, isLoose ? ["(", code, ")"] : code];
}

/** Returns the formula for a caller who is known: what asked for no more is true. */
function settled(formula: Formula): Formula {
  if (formula.kind === "code" && formula.code === "true") return TRUE;
  if (formula.kind === "and" || formula.kind === "or") return join(formula.kind, formula.parts.map(settled));
  return formula;
}

/** Adds that the caller has an address, where the formula compares it. */
function emailCode(formula: Formula): Code {
  if (!needsOf(formula).includes("email")) return emit(formula);
  const forNone = without(formula, new Set<Need>(["email"]));
  if (isConstant(forNone, false)) return ["auth.email !== null && ", wrapOr(formula)];
  return ["auth.email === null ? ", emit(forNone), " : ", emit(formula)];
}

const wrapOr = (formula: Formula): Code => (isLooseOr(formula) ? ["(", emit(formula), ")"] : emit(formula));

const isLooseOr = (formula: Formula): boolean => formula.kind === "or" && !isFilter(formula);

/** Whether all of it is code, and needs no record. */
function isCode(formula: Formula): boolean {
  if (formula.kind === "and" || formula.kind === "or") return formula.parts.every(isCode);
  return formula.kind === "code" || formula.kind === "constant";
}

function isFilter(formula: Formula): boolean {
  if (formula.kind === "and" || formula.kind === "or") return formula.parts.every(isFilter);
  return formula.kind !== "code";
}

/** Returns code that is a boolean or a filter. */
function emit(formula: Formula): Code {
  if (formula.kind === "constant") return String(formula.isTrue);
  if (formula.kind === "code") return formula.code;
  if (isFilter(formula) || (formula.kind !== "and" && formula.kind !== "or")) return returnedCode(formula);
  const { kind } = formula;
  const codes = formula.parts.filter(isCode);
  const filters = formula.parts.filter((part) => !isCode(part) && isFilter(part));
  const mixed = formula.parts.filter((part) => !isCode(part) && !isFilter(part));
  const isSimple = mixed.length + Math.min(filters.length, 1) <= 1;
  const rest = isSimple
    ? [...(filters.length === 0 ? [] : [join(kind, filters)]), ...mixed]
    : [join(kind, [...filters, ...mixed])];
  const parts = [...codes, ...rest].map((part): Code => {
    const code = isSimple || isCode(part) ? emit(part) : groupCode(part);
    const isLoose = kind === "and" && part.kind === "or" && (isCode(part) || (isSimple && !isFilter(part)));
    return isLoose ? ["(", code, ")"] : code;
  });
  const sign = kind === "and" ? " && " : " || ";
  return parts.flatMap((part, index) => (index === 0 ? [part] : [sign, part]));
}

/** Returns a filter that is made of filters and of code. */
function groupCode(formula: Formula): Code {
  if (formula.kind !== "and" && formula.kind !== "or") return filterCode(formula);
  const parts = formula.parts.map((part) => (isFilter(part) ? filterCode(part) : conditionalCode(part)));
  return callCode(formula.kind === "and" ? "allOf" : "anyOf", parts);
}

const NOTHING = "not([])";
const EVERYTHING = "[]";

/** Returns a filter that code decides on. */
function conditionalCode(formula: Formula): Code {
  if (isCode(formula)) return [emit(formula), ` ? ${EVERYTHING} : ${NOTHING}`];
  if (formula.kind !== "and" && formula.kind !== "or") return filterCode(formula);
  const codes = join(formula.kind, formula.parts.filter(isCode));
  const rest = join(
    formula.kind,
    formula.parts.filter((part) => !isCode(part)),
  );
  const filter = isFilter(rest) ? filterCode(rest) : groupCode(rest);
  if (isConstant(codes, formula.kind === "and")) return filter;
  return formula.kind === "and"
    ? [emit(codes), " ? ", filter, ` : ${NOTHING}`]
    : [emit(codes), ` ? ${EVERYTHING} : `, filter];
}

/** Returns a filter that a rule returns. TypeScript widens texts of a list there, which a field of certain texts does not take. */
function returnedCode(formula: Formula): Code {
  const parts = formula.kind === "and" ? formula.parts : [formula];
  const isWidened = parts.some((part) => part.kind === "condition" && part.isChoice === true);
  return isWidened ? callCode("allOf", [filterCode(formula)]) : filterCode(formula);
}

/** Returns a whole filter: a list of conditions, or a group. */
function filterCode(formula: Formula): Code {
  if (formula.kind === "and") return arrayCode(formula.parts.map(itemCode));
  if (formula.kind === "constant") return formula.isTrue ? EVERYTHING : NOTHING;
  return formula.kind === "condition" ? arrayCode([itemCode(formula)]) : itemCode(formula);
}

/** Returns a condition or a group of a list. */
function itemCode(formula: Formula): Code {
  switch (formula.kind) {
    case "condition":
      return conditionCode(formula);
    case "not":
      return callCode("not", [arrayCode([conditionCode(formula.condition)])]);
    case "or":
      return callCode("anyOf", formula.parts.map(filterCode));
    case "and":
      return callCode("allOf", formula.parts.map(filterCode));
    case "some":
    case "none": {
      const { step, inner } = formula;
      const parts = inner.kind === "and" ? inner.parts : isConstant(inner, true) ? [] : [inner];
      const linked = step.link === null ? parts : [step.link, ...parts];
      return callCode(formula.kind, [quoted(step.table), arrayCode(linked.map(itemCode))]);
    }
    case "constant":
      return callCode(formula.isTrue ? "allOf" : "anyOf", []);
    case "code":
      throw new Error(`code stands in a filter: ${formula.code}`);
    default:
      return formula satisfies never;
  }
}

const conditionCode = ({ field, operator, value }: Condition): Code =>
  arrayCode([quoted(field), quoted(operator), valueCode(value)]);

const valueCode = (value: CodeValue | { outer: string }): string =>
  "outer" in value ? `field(${quoted(value.outer)})` : value.code;
