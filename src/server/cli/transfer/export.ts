import { once } from "node:events";
import { createWriteStream, renameSync, rmSync, statSync } from "node:fs";
import { Command } from "@commander-js/extra-typings";
import { isJsonObject, type JsonObject } from "../../../kernel/json/json.ts";
import { formatCell } from "../../../kernel/transfer/csv-cells.ts";
import type { FieldType } from "../../config/types.ts";
import { CommandError, UsageError } from "../errors.ts";
import { PAGE_RECORDS_MAX } from "../limits.ts";
import { configOption, dataOption, keyOption, option, urlOption } from "../options.ts";
import { outputFailure, plural, printNote } from "../output.ts";
import { type Client, openExisting, requireOk } from "./client.ts";
import { fileFieldsOf, writeFiles } from "./files.ts";
import { createProgress } from "./progress.ts";
import { formatRows } from "./rows.ts";
import { formatOf, parseTarget, type Target } from "./target.ts";

export const exportCommand = new Command("export")
  .description("Writes a table as NDJSON, or as CSV to a .csv file; with --all everything")
  .argument("[TABLE]", "NAMESPACE/TABLE or NAMESPACE/INSTANCE/TABLE")
  .argument("[FILE]", "A .ndjson, .jsonl or .csv file; standard output by default")
  .addOption(
    option("--all <DIR>", "Write all tables, accounts, files and the schema to a new folder, for others to read"),
  )
  .option("--files <DIR>", "Write the files of the records to this folder, each under its id")
  .addOption(urlOption)
  .addOption(keyOption)
  .addOption(configOption)
  .addOption(dataOption)
  .action(async (table, file, options) => {
    if (options.all !== undefined) return exportAll(options.all, { ...options, table });
    if (table === undefined) throw new UsageError("name a TABLE, or --all DIR for everything");
    const target = parseTarget(table);
    const format = file === undefined ? "ndjson" : formatOf(file, ["ndjson", "csv"]);
    if (file !== undefined) requireReplaceable(file);
    const client = await openExisting(options);
    try {
      const toText = format === "csv" ? await createCsv(client, target) : ndjson;
      const fields = options.files === undefined ? [] : fileFieldsOf(await client.fieldTypes(target));
      const folder = options.files ?? "";
      const total = { written: 0, gone: 0 };
      const take = async (record: JsonObject): Promise<void> => {
        const { written, gone } = await writeFiles(client, folder, record, fields);
        total.written += written;
        total.gone += gone;
      };
      const takeAll = async (records: readonly JsonObject[]): Promise<void> => {
        if (fields.length > 0) for (const record of records) await take(record);
      };
      const count = await writeRecords(client, target, { format: toText, takeAll }, file ?? null);
      if (file !== undefined) await printNote(`wrote ${plural(count, "record")} to ${file}`);
      if (fields.length > 0) await printNote(`wrote ${plural(total.written, "file")} to ${folder}`);
      if (total.gone > 0) await printNote(`${plural(total.gone, "file")} went while the export ran`);
    } finally {
      await client.close();
    }
  });

/** Options of an export, of which everything takes the last two alone. */
interface AllOptions {
  table: string | undefined;
  files?: string;
  url?: string;
  key?: string;
  config: string;
  data: string;
}

/** Exports everything. Errors: `UsageError` for what does not go with it: hashes of passwords do not leave a running server. */
async function exportAll(folder: string, { table, files, url, key, config, data }: AllOptions): Promise<void> {
  if (table !== undefined) throw new UsageError("--all writes every table: name none");
  if (files !== undefined) throw new UsageError("--all writes all files into its folder: leave --files out");
  if (url !== undefined || key !== undefined) {
    throw new UsageError("--all reads a data directory, beside a running server too: leave --url and --key out");
  }
  // Loaded here: an export of a table needs none of it.
  const { exportEverything } = await import("./everything/everything.ts");
  await exportEverything(folder, { config, data });
}

/** Checks that an existing target is replaceable. Errors: it is no file. */
function requireReplaceable(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) throw new CommandError(`${file} is not a file`);
}

interface Format {
  /** The text before the records. */
  head: string;
  format(records: readonly JsonObject[]): string;
}

const ndjson: Format = {
  head: "",
  format: (records) => records.map((record) => `${JSON.stringify(record)}\n`).join(""),
};

async function createCsv(client: Client, target: Target): Promise<Format> {
  const types = await client.fieldTypes(target);
  const columns =
    types === null || types === "unknown"
      ? await columnsOfRecords(client, target)
      : new Map<string, FieldType | undefined>(types);
  const names = [...columns.keys()];
  return {
    head: formatRows([names.map((name) => formatCell(name, undefined))]),
    format: (records) =>
      formatRows(records.map((record) => [...columns].map(([name, type]) => formatCell(record[name], type)))),
  };
}

/** Collects the fields of a schemaless table by reading it once. */
async function columnsOfRecords(client: Client, target: Target): Promise<Map<string, FieldType | undefined>> {
  const columns = new Map<string, FieldType | undefined>([["id", "string"]]);
  for await (const { items } of pagesOf(client, target)) {
    for (const item of items) for (const name of Object.keys(item)) columns.set(name, undefined);
  }
  return columns;
}

interface Page {
  items: JsonObject[];
  /** The size of the whole table, on the first page; null on later ones. */
  total: number | null;
}

async function* pagesOf(client: Client, target: Target): AsyncGenerator<Page> {
  let after = "";
  for (;;) {
    const body = requireOk(await client.get(`${target.path}?limit=${PAGE_RECORDS_MAX}${after}`));
    const items = Array.isArray(body["items"]) ? body["items"].filter(isJsonObject) : [];
    yield { items, total: typeof body["total"] === "number" ? body["total"] : null };
    const { cursor } = body;
    if (body["hasMore"] !== true || typeof cursor !== "string") return;
    after = `&after=${encodeURIComponent(cursor)}`;
  }
}

/** Writes the records. The file gets its name only when it is complete, so that an interrupted export cannot pass for a complete one. */
async function writeRecords(
  client: Client,
  target: Target,
  { format: { head, format }, takeAll }: { format: Format; takeAll: (records: readonly JsonObject[]) => Promise<void> },
  file: string | null,
): Promise<number> {
  const temporary = file === null ? null : `${file}.${process.pid}.part`;
  const output = temporary === null ? process.stdout : createWriteStream(temporary);
  // Each write reports its own failure; without a listener the stream's event would end the process.
  output.on("error", () => {});
  // Records on the same terminal would overwrite the bar.
  const isBarHidden = file === null && process.stdout.isTTY === true;
  let count = 0;
  let progress = createProgress(0);
  try {
    if (head !== "") await write(output, head);
    for await (const { items, total } of pagesOf(client, target)) {
      if (total !== null && !isBarHidden) progress = createProgress(total);
      await takeAll(items);
      await write(output, format(items));
      count += items.length;
      progress.show(count, count);
    }
    if (temporary !== null) {
      output.end();
      await once(output, "finish");
    }
  } catch (cause) {
    if (temporary !== null) rmSync(temporary, { force: true });
    const failure = file === null ? outputFailure(cause) : cause;
    if (!isSystemError(failure)) throw failure;
    throw new CommandError(`${file ?? "Standard output"} cannot be written: ${failure.message}`, { cause });
  } finally {
    progress.end();
  }
  if (file !== null && temporary !== null) renameSync(temporary, file);
  return count;
}

const isSystemError = (cause: unknown): cause is NodeJS.ErrnoException => cause instanceof Error && "code" in cause;

/** Writes with backpressure: resolves when the stream has accepted the text. */
function write(stream: NodeJS.WritableStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (cause) => (cause ? reject(cause) : resolve()));
  });
}
