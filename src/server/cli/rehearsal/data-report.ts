import { declaredNamespaces } from "../../areas/tables/model/model.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { rehearseFiles } from "../../db/index.ts";
import { plural } from "../amounts.ts";
import { CHECK_COPY_MAX_BYTES } from "../limits.ts";
import { databasesOf } from "./beside-server.ts";
import { createReport, type RehearsalReport } from "./report.ts";

/** Tries the config on every database file of a data directory. Reads the files only, so that a running server is not affected. */
export function rehearseData(config: PlatformConfig, dataDirectory: string): RehearsalReport {
  const report = createReport();
  const job = {
    directory: databasesOf(dataDirectory),
    namespaces: declaredNamespaces(config.databases ?? {}),
    copyMaxBytes: CHECK_COPY_MAX_BYTES,
    skipsWals: false,
  };
  for (const file of rehearseFiles(job)) report.add(file);
  return report;
}

/** The files that would not open, why, and the migrations that they need. */
export function unfitText(report: RehearsalReport, dataDirectory: string): string {
  const files = `${report.unfit} of ${plural(report.looked, "database file")} in ${dataDirectory} would not open`;
  return [`${files} with this config:`, ...report.lines()].join("\n");
}
