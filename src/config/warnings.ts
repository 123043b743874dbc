import type { ConfigProblem } from "./problems.ts";
import { slowTextOf } from "./slow-pattern.ts";
import type { PlatformConfig, Rule, TableAccess, TableConfig } from "./types.ts";

/** What is allowed and probably not meant. Decisions 3. */
export function configWarnings(config: PlatformConfig): ConfigProblem[] {
  const warnings: ConfigProblem[] = [];
  for (const [name, namespace] of Object.entries(config.databases ?? {})) {
    const path = `databases.${name}`;
    const tables = Object.entries(namespace.tables);
    if (tables.length === 0) warnings.push({ path: `${path}.tables`, message: "is empty" });
    if (namespace.instance === true && namespace.access === undefined) {
      warnings.push({ path, message: "has no access, so that only a service key can open or create its instances" });
    }
    for (const [table, declared] of tables) warnings.push(...tableWarnings(`${path}.tables.${table}`, declared));
  }
  for (const [name, bucket] of Object.entries(config.storage?.buckets ?? {})) {
    if (bucket.access !== undefined) continue;
    warnings.push({
      path: `storage.buckets.${name}`,
      message: "has no access, so that only a service key gets through",
    });
  }
  for (const [name, room] of Object.entries(config.rooms ?? {})) {
    if (room.access?.join !== undefined) continue;
    warnings.push({ path: `rooms.${name}`, message: "has no access.join, so that nobody can join" });
  }
  if (config.cors?.credentials === true && [config.cors.origin ?? "*"].flat().includes("*")) {
    warnings.push({
      path: "cors",
      message: "lets pages of any origin send requests with credentials; name the origins",
    });
  }
  return warnings;
}

function tableWarnings(path: string, table: TableConfig): ConfigProblem[] {
  return [...accessWarnings(path, table), ...patternWarnings(path, table)];
}

function patternWarnings(path: string, { schema = {} }: TableConfig): ConfigProblem[] {
  return Object.entries(schema).flatMap(([name, field]) => {
    if (field === false || field.pattern === undefined) return [];
    const { pattern } = field;
    const slow = slowTextOf(pattern instanceof RegExp ? pattern : new RegExp(pattern, "u"));
    if (slow === null) return [];
    const message =
      `takes much longer with each character of some texts (${JSON.stringify(slow)}), so that one request can hold the server up for ` +
      "seconds; let what it repeats be divided by what it does not contain, as in ^([a-z]+-)*[a-z]+$";
    return [{ path: `${path}.schema.${name}.pattern`, message }];
  });
}

function accessWarnings(path: string, { access }: TableConfig): ConfigProblem[] {
  if (access === undefined) {
    return [{ path, message: "has no access, so that only a service key gets through" }];
  }
  const message = overwriting(access);
  return message === null ? [] : [{ path: `${path}.access`, message }];
}

/** Why an insert by somebody could overwrite what they may not update; null where it cannot. */
function overwriting({ insert = false, update = false, upsert }: TableAccess): string | null {
  if (insert === false || update === true || upsert === "matching") return null;
  if (upsert === "either") {
    // Also where both are one function: the insert rule is asked about what the record would become.
    return (
      'says upsert: "either", so that with ?upsert=true whoever may insert can overwrite records that the update rule ' +
      'keeps from them. Remove it, or say upsert: "matching", to ask the rule that fits what happens'
    );
  }
  if (insert === update || looksAtRecord(insert) || looksAtRecord(update)) return null;
  return (
    "has rules that may both be decided by auth alone: with ?upsert=true whoever may insert then overwrites records that the " +
    'update rule keeps from them. Say upsert: "matching" to ask the rule that fits what happens, or upsert: "either" if it is meant so'
  );
}

/** By its declaration. What a rule of auth alone returns, true or a filter, is not known here. */
const looksAtRecord = (rule: Rule): boolean => typeof rule === "function" && rule.length > 1;
