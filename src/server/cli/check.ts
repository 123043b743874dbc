import { existsSync } from "node:fs";
import { Command } from "@commander-js/extra-typings";
import * as platformModule from "../../index.ts";
import { loadConfig } from "../config/loading/load.ts";
import { ownProduct } from "../config/loading/product.ts";
import { scheduledBackups } from "../config/sections/backups.ts";
import type { BackupsPlace, PlatformConfig, ScheduledBackupsConfig, TableConfig } from "../config/types.ts";
import { CommandError } from "./errors.ts";
import { configOption, DATA_DEFAULT, option } from "./options.ts";
import { plural, printAnswer, printNote } from "./output.ts";
import { rehearseData, unfitText } from "./rehearsal/report.ts";
import { rehearseRoutes } from "./rehearsal/routes.ts";

export const checkCommand = new Command("check")
  .description("Checks a config, and prints what it declares")
  .addOption(configOption)
  .addOption(
    option("--data <DIR>", `Try the config on every database file of a data directory, such as ${DATA_DEFAULT}`),
  )
  .action(async ({ config: file, data }) => {
    const { config, warnings } = await loadConfig(file, platformModule);
    const name = ownProduct() === null ? file : "The config";
    for (const { path, message } of warnings) await printNote(`warning: ${path}: ${message}`);
    await rehearseRoutes(config, name);
    const filesLine = data === undefined ? [] : [await rehearse(config, data)];
    await printAnswer([`${name} is fine. It declares:`, ...declarations(config), ...filesLine].join("\n"));
  });

/** Tries the config on a data directory. Errors: the files that would not open, and why. */
async function rehearse(config: PlatformConfig, dataDirectory: string): Promise<string> {
  if (!existsSync(dataDirectory)) throw new CommandError(`There is no data directory ${dataDirectory}`);
  const report = rehearseData(config, dataDirectory);
  if (report.unfit > 0) throw new CommandError(unfitText(report, dataDirectory));
  for (const line of report.lines()) await printNote(`warning: ${line}`);
  return `It fits the ${plural(report.looked, "database file")} in ${dataDirectory}.`;
}

function declarations(config: PlatformConfig): string[] {
  const lines: string[] = [];
  for (const [name, namespace] of Object.entries(config.databases ?? {})) {
    lines.push(`  namespace ${name}${namespace.instance === true ? " (one file per instance)" : ""}`);
    for (const [table, declared] of Object.entries(namespace.tables))
      lines.push(`    ${declared.view === undefined ? "table" : "view"} ${describeTable(table, declared)}`);
  }
  const kinds: [kind: string, declared: object | undefined][] = [
    ["bucket", config.storage?.buckets],
    ["key-value namespace", config.kv],
    ["SQL database", config.d1],
    ["vector index", config.vectorize],
    ["room", config.rooms],
    ["job", config.jobs],
    ["schedule", config.cron],
    ["trigger", config.triggers],
    ["webhook", config.webhooks],
    ["service key", config.serviceKeys],
    ["OAuth provider", config.auth?.oauth],
  ];
  for (const [kind, declared] of kinds) {
    for (const name of Object.keys(declared ?? {})) lines.push(`  ${kind} ${name}`);
  }
  if (config.routes !== undefined) lines.push("  routes");
  if (config.site !== undefined) lines.push("  site");
  const scheduled = scheduledBackups(config.backups);
  if (scheduled !== undefined) lines.push(`  ${describeBackups(scheduled)}`);
  if (config.backups?.continuous !== undefined) {
    lines.push(`  continuous backup to ${describePlace(config.backups.continuous.to)}`);
  }
  return lines.length === 0 ? ["  nothing"] : lines;
}

const describePlace = (to: BackupsPlace): string => ("folder" in to ? to.folder : `the bucket ${to.s3.bucket}`);

const describeBackups = ({ schedule, keep, to }: ScheduledBackupsConfig): string =>
  `backups at "${schedule}" (UTC) into ${describePlace(to)}, ${keep} kept`;

function describeTable(name: string, table: TableConfig): string {
  const fields = Object.values(table.schema ?? {}).filter((field) => field !== false).length;
  const facts = [table.schema === undefined ? "schemaless" : `${fields} ${fields === 1 ? "field" : "fields"}`];
  if (table.fts !== undefined) facts.push("full-text search");
  const rules = (["read", "insert", "update", "delete"] as const).filter((rule) => table.access?.[rule] !== undefined);
  facts.push(rules.length === 0 ? "no rules" : `rules for ${rules.join(", ")}`);
  return `${name}: ${facts.join("; ")}`;
}
