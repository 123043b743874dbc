import { tableNameProblem } from "../../config/shape/names.ts";
import type { Remarks } from "./remarks.ts";

/** Returns the names of tables here by the id of what becomes one; reserved names get another one, which the report tells. */
export function tableNames(sources: readonly { id: string; name: string }[], remarks: Remarks): Map<string, string> {
  const taken = new Set(sources.map(({ name }) => name.toLowerCase()));
  const names = new Map<string, string>();
  for (const { id, name } of sources) {
    const chosen = freeName(name, (one) => one !== name && taken.has(one.toLowerCase()));
    taken.add(chosen.toLowerCase());
    if (chosen !== name) remarks.look(name, `is called ${chosen} here, as its name is none that a table has here`);
    names.set(id, chosen);
  }
  return names;
}

function freeName(name: string, isTaken: (name: string) => boolean): string {
  const word = name
    .replace(/\W+/g, "_")
    .replace(/^(?![A-Za-z])/, "t_")
    .slice(0, 50);
  for (let count = 1; ; count += 1) {
    const wanted = [name, word, `${word}_table`, `${word}_${count}`].find(
      (one) => tableNameProblem(one) === null && !isTaken(one),
    );
    if (wanted !== undefined) return wanted;
  }
}
