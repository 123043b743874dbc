import type { ConfigProblem } from "../problems.ts";
import { isPlainObject } from "../shape/report.ts";
import type { NamespaceConfig, PlatformConfig, TableConfig } from "../types.ts";
import { kindOf } from "./declared-tables.ts";
import { indexWarning, isAsyncFunction, SOMEBODY, STAND_IN } from "./lookup-warnings.ts";

type Tables = NamespaceConfig["tables"];

/**
 * Returns warnings for relations that make a rule deny: with a table or field that is not declared, or without an index. Only
 * synchronous rules of tables are tried, with stand-ins for a user and the records.
 */
export function relationWarnings({ databases = {} }: PlatformConfig): ConfigProblem[] {
  const problems = new Map<string, ConfigProblem>();
  for (const [namespace, { tables }] of Object.entries(databases)) {
    for (const [table, declared] of Object.entries(tables)) {
      for (const [action, rule] of Object.entries(declared.access ?? {})) {
        if (typeof rule !== "function" || isAsyncFunction(rule)) continue;
        const path = `databases.${namespace}.${kindOf(declared)}.${table}.access.${action}`;
        for (const message of problemsOf(triedAnswer(rule), declared, tables)) {
          problems.set(`${path} ${message}`, { path, message: `has a relation that makes it deny: ${message}` });
        }
      }
    }
  }
  return [...problems.values()];
}

/** Returns what a synchronous rule answers to somebody, about stand-ins for records; null where it throws. */
export function triedAnswer(rule: unknown): unknown {
  try {
    return (rule as (...args: unknown[]) => unknown)(SOMEBODY, STAND_IN, STAND_IN);
  } catch {
    // The stand-ins caused the error, or the rule looks something up.
    return null;
  }
}

/** Returns the problems of the relations in a filter on the table `outer`. */
function* problemsOf(filter: unknown, outer: TableConfig, tables: Tables): Generator<string> {
  if (Array.isArray(filter)) for (const element of filter) yield* problemsOf(element, outer, tables);
  if (!isPlainObject(filter)) return;
  for (const group of [filter["or"], filter["and"], filter["not"]]) yield* problemsOf(group, outer, tables);
  for (const relation of [filter["some"], filter["none"]]) {
    if (isPlainObject(relation)) yield* relationProblems(relation["table"], relation["where"], { outer, tables });
  }
}

function* relationProblems(
  name: unknown,
  where: unknown,
  { outer, tables }: { outer: TableConfig; tables: Tables },
): Generator<string> {
  const table = typeof name === "string" && Object.hasOwn(tables, name) ? tables[name] : undefined;
  if (table === undefined || table.view !== undefined) {
    yield `${String(name)} is not a table of its namespace${table === undefined ? "" : ", but a view"}`;
    return;
  }
  const equal: string[] = [];
  for (const tuple of Array.isArray(where) ? where : []) {
    if (!Array.isArray(tuple)) continue;
    const [field, operator, value]: unknown[] = tuple;
    if (!hasField(table, field)) yield `${String(field)} is not a field of ${String(name)}`;
    if (isPlainObject(value) && !hasField(outer, value["field"]))
      yield `${String(value["field"])} is not a field of the table`;
    if (operator === "==" || operator === "in") equal.push(String(field));
  }
  const missing = indexWarning(table, equal);
  if (missing !== null) yield `no index of ${String(name)} answers it: ${missing}`;
  yield* problemsOf(where, table, tables);
}

/** Whether a table has this field; one without a schema has any. */
const hasField = ({ schema }: TableConfig, name: unknown): boolean =>
  typeof name === "string" &&
  (schema === undefined ||
    ["id", "createdAt", "updatedAt"].includes(name) ||
    Object.hasOwn(schema, name.split(".")[0] ?? ""));
