import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as platformModule from "../../../../index.ts";
import { SYSTEM_FILE } from "../../../areas/backup/layout.ts";
import { compileNamespaces } from "../../../areas/tables/model/model.ts";
import { loadConfig } from "../../../config/loading/load.ts";
import type { PlatformConfig } from "../../../config/types.ts";
import { holdRemovals } from "../../../db/index.ts";
import { abortOnStop, explained } from "../../backup/backup.ts";
import { requireDataDirectory } from "../../data-directory.ts";
import { CommandError } from "../../errors.ts";
import { plural, printNote } from "../../output.ts";
import { accountsIn } from "./accounts.ts";
import { claimFolder, emptyFolder, TextFile } from "./folder.ts";
import { type ExportedNamespace, postgresSchema, sqliteSchema } from "./schema-sql.ts";
import { createFileCopies } from "./stored-files.ts";
import { exportNamespace, openForExport } from "./tables.ts";

interface Counts {
  records: number;
  accounts: number;
  files: number;
}

/**
 * Writes everything of a data directory into a new folder, in forms that others read. A server may run: each file of records is as it is
 * at one moment. Errors: CommandError, also for a folder that has something in it; nothing of a failed export stays.
 */
export async function exportEverything(folder: string, options: { config: string; data: string }): Promise<void> {
  requireDataDirectory(options.data);
  const { config } = await loadConfig(options.config, platformModule);
  const into = resolve(folder);
  const signal = abortOnStop();
  claimFolder(into);
  const hold = holdRemovals(resolve(options.data));
  try {
    const counts = await explained(signal, "export", () => write(into, { config, data: options.data, signal }));
    const { records, accounts, files } = counts;
    await printNote(
      `wrote ${plural(records, "record")}, ${plural(accounts, "account")} and ${plural(files, "file")} to ${folder}`,
    );
  } catch (cause) {
    emptyFolder(into);
    throw cause;
  } finally {
    hold.release();
  }
}

async function write(
  folder: string,
  { config, data, signal }: { config: PlatformConfig; data: string; signal: AbortSignal },
): Promise<Counts> {
  const namespaces = namespacesOf(config);
  writeText(folder, "schema.sqlite.sql", sqliteSchema(namespaces));
  writeText(folder, "schema.postgres.sql", postgresSchema(namespaces));
  writeText(folder, "openapi.json", await openApiOf(config));
  const copies = createFileCopies({ data, folder, buckets: config.storage?.buckets ?? {}, signal });
  const counts: Counts = { records: 0, accounts: 0, files: 0 };
  for (const namespace of namespaces) {
    const { records, files } = await exportNamespace(namespace, { data, folder, copies, signal });
    counts.records += records;
    counts.files += files;
  }
  using system = openForExport(join(data, SYSTEM_FILE));
  counts.accounts = await writeLines(folder, "accounts.ndjson", accountsIn(system));
  // The last one: an export that has it is whole.
  counts.files += await writeLines(folder, "files.ndjson", copies.ofBuckets(system));
  return counts;
}

function namespacesOf(config: PlatformConfig): ExportedNamespace[] {
  const databases = config.databases ?? {};
  return [...compileNamespaces(databases)].map(([name, models]) => ({
    name,
    isDynamic: databases[name]?.instance === true,
    models: [...models.values()],
  }));
}

function writeText(folder: string, name: string, text: string): void {
  const file = new TextFile(join(folder, name));
  file.write(text);
  file.end();
}

/** Writes a JSON value a line. The file gets its name when it is whole. Returns the number of lines. */
async function writeLines(
  folder: string,
  name: string,
  lines: Iterable<unknown> | AsyncIterable<unknown>,
): Promise<number> {
  const path = join(folder, name);
  const file = new TextFile(`${path}.part`);
  let count = 0;
  try {
    for await (const line of lines) {
      file.write(`${JSON.stringify(line)}\n`);
      count += 1;
    }
  } finally {
    file.end();
  }
  renameSync(`${path}.part`, path);
  return count;
}

/** Returns the OpenAPI document of a config, of a server without data that answers nobody else. */
async function openApiOf(config: PlatformConfig): Promise<string> {
  const { openPlatform } = await import("../../../platform/open.ts");
  const data = mkdtempSync(join(tmpdir(), "platform-export-"));
  try {
    const shown = { ...config, api: { ...config.api, docs: true, schemaEndpoint: true } };
    const platform = await openPlatform(shown, { data, environment: {}, isDrill: true });
    try {
      const request = new Request("http://localhost/swagger/json", {
        headers: { "x-platform-service-key": platform.serviceKey },
      });
      const answer = await platform.fetch(request);
      if (answer.status !== 200) throw new CommandError(`the OpenAPI document is refused with ${answer.status}`);
      return await answer.text();
    } finally {
      await platform.stop();
    }
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}
