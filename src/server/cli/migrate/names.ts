import { tableNameProblem } from "../../config/shape/names.ts";
import type { Remarks } from "./remarks.ts";

/** Returns the names of tables here by the id of what becomes one; reserved names get another one, which the report tells. */
export function tableNames(sources: readonly { id: string; name: string }[], remarks: Remarks): Map<string, string> {
  const taken = new Set(sources.map(({ name }) => name.toLowerCase()));
  const names = new Map<string, string>();
  for (const { id, name } of sources) {
    let chosen = name;
    while (tableNameProblem(chosen) !== null || (chosen !== name && taken.has(chosen.toLowerCase()))) {
      chosen = chosen === name ? `${name.slice(0, 56)}_table` : `${chosen}_`;
    }
    taken.add(chosen.toLowerCase());
    if (chosen !== name) remarks.look(name, `is called ${chosen} here, as its name is reserved`);
    names.set(id, chosen);
  }
  return names;
}
