import type { ConfigProblem } from "../problems.ts";
import { isPlainObject } from "../shape/report.ts";
import type { PlatformConfig, TableConfig } from "../types.ts";
import { isAsyncFunction, SOMEBODY, STAND_IN } from "./lookup-warnings.ts";

/** Fields that callers cannot change. */
const SET_BY_SERVER = ["id", "createdAt", "updatedAt"];

/**
 * Returns warnings for update rules whose filter names fields that are not `fixed`: the filter is asked of the stored record, so the
 * update may change these fields to what it would not allow. Only synchronous rules that do not take the next record are tried.
 */
export function fixedWarnings({ databases = {} }: PlatformConfig): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  for (const [namespace, { tables }] of Object.entries(databases)) {
    for (const [table, declared] of Object.entries(tables)) {
      const rule = declared.access?.update;
      if (typeof rule !== "function" || rule.length > 2 || isAsyncFunction(rule)) continue;
      const names = new Set(namesIn(answerOf(rule)).filter((name) => isChangeable(declared, name)));
      if (names.size === 0) continue;
      const message =
        `returns a filter on ${[...names].join(", ")}, which is asked of the stored record: the update may change ` +
        `${names.size === 1 ? "it" : "them"} to any value. Declare fixed: true, or compare with the next record`;
      problems.push({ path: `databases.${namespace}.tables.${table}.access.update`, message });
    }
  }
  return problems;
}

function answerOf(rule: unknown): unknown {
  try {
    return (rule as (...args: unknown[]) => unknown)(SOMEBODY, STAND_IN);
  } catch {
    // The stand-ins caused the error, or the rule looks something up.
    return null;
  }
}

/** Returns the fields of the record that a filter names, by conditions or from within its relations. */
function namesIn(filter: unknown): string[] {
  if (Array.isArray(filter)) return filter.flatMap(namesOfElement);
  return namesOfElement(filter);
}

function namesOfElement(element: unknown): string[] {
  if (Array.isArray(element)) return [String(element[0])];
  if (!isPlainObject(element)) return [];
  const lists = [element["or"], element["and"]].filter((one) => Array.isArray(one));
  const groups = [...lists.flat(), element["not"]].flatMap(namesIn);
  const related = [element["some"], element["none"]].filter(isPlainObject);
  return [...groups, ...related.flatMap(({ where }) => outerNames(where))];
}

/** Returns the fields of the outer record that a relation's filter names. Those in further relations are of another record. */
function outerNames(where: unknown): string[] {
  if (!Array.isArray(where)) return isPlainObject(where) ? outerNames([where]) : [];
  return where.flatMap((element: unknown) => {
    if (Array.isArray(element)) return isPlainObject(element[2]) ? [String(element[2]["field"])] : [];
    if (!isPlainObject(element)) return [];
    const lists = [element["or"], element["and"]].filter((one) => Array.isArray(one));
    return [...lists.flat(), element["not"]].flatMap(outerNames);
  });
}

/** Whether callers may change a field of the table. */
function isChangeable({ schema }: TableConfig, path: string): boolean {
  const name = path.split(".")[0] ?? "";
  if (SET_BY_SERVER.includes(name)) return false;
  const field = schema !== undefined && Object.hasOwn(schema, name) ? schema[name] : undefined;
  return schema === undefined || (typeof field === "object" && field.fixed !== true);
}
