import type { ConfigProblem } from "./problems.ts";
import type { PlatformConfig, TableAccess, TableConfig } from "./types.ts";

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

function tableWarnings(path: string, { access }: TableConfig): ConfigProblem[] {
  if (access === undefined) {
    return [{ path, message: "has no access, so that only a service key gets through" }];
  }
  if (access.upsert !== undefined || !isUpdateStricter(access)) return [];
  const message =
    "has an update rule that may be stricter than its insert rule: with ?upsert=true whoever may insert overwrites " +
    'existing records. Say upsert: "matching" to ask the update rule for those, or upsert: "either" if it is meant so';
  return [{ path: `${path}.access`, message }];
}

/** Two functions cannot be compared; what can be is whether they are the same one. */
function isUpdateStricter({ insert = false, update = false }: TableAccess): boolean {
  if (insert === false || update === true) return false;
  return insert !== update;
}
