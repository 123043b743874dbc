import type { Remarks } from "../remarks.ts";
import type { KeptOut } from "./accounts.ts";
import { type PbCollection, ruleOption } from "./collections.ts";
import type { MovedRule, MovedRules } from "./config.ts";
import type { MovedTable, MovePlan } from "./plan.ts";

const VERIFIED = /^\s*verified\s*=\s*true\s*$/;

/** Returns rules as far as they let everybody or nobody in; the others deny, with the original above. */
export function plainRules({ collection }: MovedTable): MovedRules {
  const { list, view, create, update, delete: remove } = collection.rules;
  const denied = (named: Readonly<Record<string, string | null>>): MovedRule => {
    const isOpen = Object.values(named).every((rule) => rule === "");
    const quoted = Object.entries(named).flatMap(([name, rule]) =>
      rule === null ? [] : [`${name}: ${oneLine(rule)}`],
    );
    return isOpen ? { code: "true", comments: [] } : { code: null, comments: quoted };
  };
  return {
    read: denied({ listRule: list, viewRule: view }),
    insert: denied({ createRule: create }),
    update: denied({ updateRule: update }),
    delete: denied({ deleteRule: remove }),
  };
}

/** Returns a rule as one line of a comment. */
const oneLine = (rule: string): string => (rule === "" ? '""' : rule.replace(/\s+/g, " ").trim());

/** Reads the rules that say which accounts may sign in. */
export function signInRule(plan: MovePlan, remarks: Remarks): { requiresVerified: boolean; isKeptOut: KeptOut } {
  const auth = plan.tables.filter(({ kind }) => kind !== "records").map(({ collection }) => collection);
  const rules = new Map(auth.map(({ id, options }) => [id, ruleOption(options, "authRule")]));
  const main = plan.users?.collection;
  const requiresVerified = main !== undefined && VERIFIED.test(rules.get(main.id) ?? "");
  for (const { id, name } of auth) {
    const rule = rules.get(id) ?? null;
    const isKept = rule !== "" && !VERIFIED.test(rule ?? "");
    if (isKept) remarks.look(name, `all accounts are disabled, by the authRule ${rule ?? "of superusers alone"}`);
  }
  const isKeptOut = ({ id }: PbCollection, row: Record<string, unknown>): boolean => {
    const rule = rules.get(id) ?? null;
    if (rule === "") return false;
    if (rule !== null && VERIFIED.test(rule)) return id !== main?.id && !row["verified"];
    return true;
  };
  return { requiresVerified, isKeptOut };
}
