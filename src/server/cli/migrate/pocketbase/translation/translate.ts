import type { MovedRule, MovedRules } from "../../config-source.ts";
import type { Remarks } from "../../remarks.ts";
import { boundProblem, type Relation, relationsOf } from "../../rules/bounds.ts";
import { ruleCode } from "../../rules/emit.ts";
import { FALSE, type Formula, isConstant, join, joinRelated, literal, type Tell, TRUE } from "../../rules/formula.ts";
import { ruleOption } from "../collections.ts";
import { type Expression, parseFilter } from "../filter/parser.ts";
import { FilterError } from "../filter/tokens.ts";
import type { MovedTable, MovePlan } from "../plan.ts";
import { compare } from "./compare.ts";
import type { RulePlace } from "./terms.ts";

/** Translates the rules of a source, and collects the indexes that they need. */
export function createTranslation(plan: MovePlan, remarks: Remarks) {
  const indexes = new Map<string, Set<string>>();
  const others = plan.tables.filter(({ kind }) => kind === "accounts").map(({ name }) => name);
  const options = (action: RulePlace["action"]) => ({ action, meCode: meCode(plan, others) });

  const ruleOf = (
    table: MovedTable,
    action: RulePlace["action"],
    named: Readonly<Record<string, string | null>>,
  ): MovedRule => {
    const rules = Object.entries(named);
    const isClosed = rules.some(([, rule]) => rule === null);
    const originals = rules.flatMap(([name, rule]) => (rule === null ? [] : [`${name}: ${oneLine(rule)}`]));
    if (isClosed) return { code: null, comments: originals };
    const why = new Set<string>();
    const tell: Tell = (text) => void why.add(text);
    const place = { plan, table, action };
    const formulas = rules.map(([name, rule]) => formulaOf(rule ?? "", place, { tell, name, remarks }));
    const formula = joinRelated(join("and", [...formulas, ...ofMainCollection(table, others)]), tell);
    const code = bounded(formula, place, { tell, indexes }) ? ruleCode(formula, options(action)) : null;
    if (code !== null && action === "read" && looksAtRecord(formula)) {
      tell("lists are refused, as the rule looks at each record: single records are read");
    }
    if (why.size === 0) return { code, comments: [] };
    const reasons = [...why].join("; ");
    remarks.look(
      `${table.collection.name}, ${rules.map(([name]) => name).join(" and ")}`,
      `is stricter here: ${reasons}`,
    );
    return { code, comments: [...originals, `${code === null ? "Denies" : "Stricter"} here: ${reasons}.`] };
  };

  return {
    rulesOf(table: MovedTable): MovedRules {
      const { list, view, create, update, delete: remove } = table.collection.rules;
      const isOneRule = list === view;
      if (!isOneRule) {
        remarks.look(
          table.collection.name,
          `the listRule (${shown(list)}) and the viewRule (${shown(view)}) differ: both must hold here`,
        );
      }
      const isOfAccounts = table.kind !== "records";
      const manage = ruleOption(table.collection.options, "manageRule");
      if (manage !== null) remarks.lost(table.collection.name, `the manageRule: ${oneLine(manage)}`);
      return {
        read: ruleOf(table, "read", isOneRule ? { "listRule and viewRule": list } : { listRule: list, viewRule: view }),
        insert: isOfAccounts ? signUp(table) : ruleOf(table, "insert", { createRule: create }),
        update: ruleOf(table, "update", { updateRule: update }),
        delete: isOfAccounts ? closed("deleteRule", remove) : ruleOf(table, "delete", { deleteRule: remove }),
      };
    },
    /** Returns the rule that reads a view. */
    readRule: ruleOf,
    /** Returns the fields by which relations of the rules look a table up, and that no index begins with. */
    indexesOf: (table: string): readonly string[] => [...(indexes.get(table) ?? [])],
  };
}

/** Whether code of the formula reads the record, which a filter cannot do. */
function looksAtRecord(formula: Formula): boolean {
  if (formula.kind === "and" || formula.kind === "or") return formula.parts.some(looksAtRecord);
  return formula.kind === "code" && formula.code.includes("record.");
}

const closed = (name: string, rule: string | null): MovedRule => ({
  code: null,
  comments: rule === null ? [] : [`${name}: ${oneLine(rule)}`],
});

/** Returns who may sign up: everybody, or nobody. Accounts of other collections are made by keys. */
const signUp = ({ kind, collection }: MovedTable): MovedRule =>
  kind === "users" && collection.rules.create === ""
    ? { code: "true", comments: [] }
    : closed("createRule", collection.rules.create);

const shown = (rule: string | null): string => (rule === null ? "superusers" : `\`${oneLine(rule)}\``);

/** Returns a rule as one line of a comment. */
export const oneLine = (rule: string): string => (rule === "" ? '""' : rule.replace(/\s+/g, " ").trim());

/** Returns the lookup of the caller's record. Accounts of other collections are no records of the main one. */
function meCode({ users }: MovePlan, others: readonly string[]): string {
  const lookup = `table(${literal(users?.name ?? "users").code}).get(auth.id)`;
  const [other] = others;
  if (other === undefined) return lookup;
  const isOther =
    others.length === 1 ? `auth.role === ${literal(other).code}` : `${JSON.stringify(others)}.includes(auth.role)`;
  return `${isOther} ? null : ${lookup}`;
}

/** Leaves accounts of other collections out of the table of users, which has all accounts. */
const ofMainCollection = ({ kind }: MovedTable, others: readonly string[]): Formula[] =>
  kind !== "users"
    ? []
    : others.map((table) => ({
        kind: "none",
        step: {
          alias: `:${table}`,
          table,
          isMany: false,
          link: { kind: "condition", field: "id", operator: "==", value: { outer: "id" } },
        },
        inner: TRUE,
      }));

function formulaOf(
  rule: string,
  place: RulePlace,
  { tell, name, remarks }: { tell: Tell; name: string; remarks: Remarks },
): Formula {
  if (rule.trim() === "") return TRUE;
  let isTrap = false;
  const walk = (expression: Expression): Formula => {
    if (expression.kind !== "comparison") return join(expression.kind, expression.parts.map(walk));
    const compared = attempt(() => compare(expression, place));
    if (typeof compared === "string") {
      tell(compared);
      return FALSE;
    }
    isTrap ||= compared.isTrap;
    return compared.formula;
  };
  const expression = attempt(() => parseFilter(rule));
  if (typeof expression === "string") {
    tell(expression);
    return FALSE;
  }
  const formula = walk(expression);
  if (isTrap) {
    remarks.look(
      `${place.table.collection.name}, ${name}`,
      "compares `@request.auth` with values that may be empty: there that may let callers without a token in, here it does not",
    );
  }
  return formula;
}

/** Returns the message of a FilterError in place of a result. */
function attempt<T extends object>(work: () => T): T | string {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof FilterError) return cause.message;
    throw cause;
  }
}

/** Checks that this server takes the filter, and notes the indexes that it needs. */
function bounded(
  formula: Formula,
  { plan }: RulePlace,
  { tell, indexes }: { tell: Tell; indexes: Map<string, Set<string>> },
): boolean {
  const problem = boundProblem(formula);
  if (problem !== null) tell(problem);
  else {
    const missing = relationsOf(formula).flatMap((relation) => missingIndex(plan, relation) ?? []);
    if (!missing.some(({ field }) => field === null)) {
      for (const { table, field } of missing) {
        if (field !== null) indexes.set(table, new Set([...(indexes.get(table) ?? []), field]));
      }
      return true;
    }
    tell("a related record is found by no index");
  }
  return false;
}

/** Returns the index that a relation lacks; `field` null: none would do. */
function missingIndex(plan: MovePlan, { step, inner }: Relation): { table: string; field: string | null } | null {
  // Links are by ids and references, which have an index.
  if (step.link !== null) return null;
  const parts = inner.kind === "and" ? inner.parts : [inner];
  const equal = parts.flatMap((part) =>
    part.kind === "condition" && ["==", "in"].includes(part.operator) && !isConstant(part, true) ? [part.field] : [],
  );
  const table = plan.tables.find(({ name }) => name === step.table);
  const isIndexed = (name: string): boolean =>
    name === "id" ||
    table?.indexes.some(({ fields }) => fields[0] === name) === true ||
    table?.fields.some((field) => field.name === name && field.kind === "reference") === true;
  return equal.some(isIndexed) ? null : { table: step.table, field: equal[0] ?? null };
}

export type Translation = ReturnType<typeof createTranslation>;
