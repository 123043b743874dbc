import type { RehearsedFile } from "../../db/index.ts";
import { plural } from "../amounts.ts";
import { REPORTED_FILES_MAX, REPORTED_GROUPS_MAX } from "../limits.ts";

interface Group {
  namespace: string;
  /** Null for the one file of a static namespace. */
  names: string[] | null;
  count: number;
  problems: readonly string[];
}

export interface RehearsalReport {
  readonly looked: number;
  /** Files that the server would not open. */
  readonly unfit: number;
  add(file: RehearsedFile): void;
  /** One group per set of problems; empty when all files fit. */
  lines(): string[];
}

/** The report of `platform check --data`. It keeps a bounded number of names. */
export function createReport(): RehearsalReport {
  const groups = new Map<string, Group>();
  let looked = 0;
  let unfit = 0;
  let unnamed = 0;
  return {
    get looked() {
      return looked;
    },
    get unfit() {
      return unfit;
    },
    add(file) {
      looked++;
      if (file.state === "fits") return;
      if (file.state === "unfit") unfit++;
      const problems = file.state === "unfit" ? file.problems : [`was not tried: ${file.reason}`];
      const key = JSON.stringify([file.namespace, ...problems]);
      const group = groups.get(key);
      if (group === undefined && groups.size >= REPORTED_GROUPS_MAX) {
        unnamed++;
        return;
      }
      const { namespace, instanceId } = file;
      const known = group ?? { namespace, names: instanceId === null ? null : [], count: 0, problems };
      known.count++;
      if (instanceId !== null && known.count <= REPORTED_FILES_MAX) known.names?.push(instanceId);
      groups.set(key, known);
    },
    lines() {
      const lines = [...groups.values()].flatMap((group) => [
        heading(group),
        ...group.problems.map((one) => `  ${one}`),
      ]);
      if (unnamed > 0) lines.push(`and ${plural(unnamed, "instance")} more`);
      return lines;
    },
  };
}

function heading({ namespace, names, count }: Group): string {
  if (names === null) return `databases.${namespace}:`;
  const more = count > names.length ? ` and ${count - names.length} more` : "";
  return `databases.${namespace}, ${plural(count, "instance")} (${names.join(", ")}${more}):`;
}
