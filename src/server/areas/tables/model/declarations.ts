import type { NamespaceConfig } from "../../../config/types.ts";
import type { RehearsalJob } from "../../../db/index.ts";
import { compileTables, declareTable } from "./model.ts";

/** The declared namespaces in the form that a rehearsal compares with files. */
export function declaredNamespaces(
  databases: Readonly<Record<string, NamespaceConfig>>,
): RehearsalJob["namespaces"][number][] {
  return Object.entries(databases).map(([name, config]) => ({
    name,
    isDynamic: config.instance === true,
    tables: [...compileTables(name, config.tables).values()].map(declareTable),
  }));
}
