import { join } from "node:path";
import { declaredNamespaces } from "../../areas/tables/model/model.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { type RehearsedFile, rehearseFiles } from "../../db/index.ts";
import { CHECK_COPY_MAX_BYTES, REPORTED_FILES_MAX, REPORTED_GROUPS_MAX } from "../limits.ts";
import { plural } from "../output.ts";
import { databasesOf } from "./beside-server.ts";

interface Group {
  namespace: string;
  /** The instance names; null for the one file of a static namespace. */
  names: string[] | null;
  count: number;
  problems: readonly string[];
}

export interface RehearsalReport {
  readonly looked: number;
  /** The number of files that the server would not open. */
  readonly unfit: number;
  add(file: RehearsedFile): void;
  /** Returns one group per set of problems; empty when all files fit. */
  lines(): string[];
}

/** Creates the report of `platform check --data`, with a bounded number of names. */
function createReport(): RehearsalReport {
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

/** Tries the config on every database file of a data directory. It only reads the files, so that a running server is not affected. */
export function rehearseData(config: PlatformConfig, dataDirectory: string): RehearsalReport {
  const report = createReport();
  const job = {
    directory: databasesOf(dataDirectory),
    namespaces: declaredNamespaces(config.databases ?? {}),
    copyMaxBytes: CHECK_COPY_MAX_BYTES,
    accounts: join(dataDirectory, "system.db"),
    skipsWals: false,
  };
  for (const file of rehearseFiles(job)) report.add(file);
  return report;
}

/** Lists the files that would not open, why, and the migrations that they need. */
export function unfitText(report: RehearsalReport, dataDirectory: string): string {
  const files = `${report.unfit} of ${plural(report.looked, "database file")} in ${dataDirectory} would not open`;
  return [`${files} with this config:`, ...report.lines()].join("\n");
}
