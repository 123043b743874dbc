import { statSync } from "node:fs";
import { Command } from "@commander-js/extra-typings";
import { reasonOf } from "../../../kernel/errors.ts";
import { isJsonObject } from "../../../kernel/json/json.ts";
import { CommandError, UsageError } from "../errors.ts";
import { BATCH_MAX_CHARACTERS, BATCH_RECORDS_MAX } from "../limits.ts";
import { configOption, dataOption, keyOption, option, urlOption } from "../options.ts";
import { plural, printAnswer } from "../output.ts";
import { type Client, type FieldTypes, openClient, type Reply, requireOk } from "./client.ts";
import { fileFieldsOf, formOf, hasFiles } from "./files.ts";
import { createProgress } from "./progress.ts";
import { type Reading, readRecords, type SourceRecord } from "./records.ts";
import { type Format, formatOf, parseTarget, type Target } from "./target.ts";

const PAYLOAD_TOO_LARGE = 413;

export const importCommand = new Command("import")
  .description("Inserts the records of a JSON array, NDJSON or CSV file into a table")
  .argument("<TABLE>", "NAMESPACE/TABLE or NAMESPACE/INSTANCE/TABLE")
  .argument("<FILE>", "A .json, .ndjson, .jsonl or .csv file")
  .option("--upsert", "Update records whose id exists")
  .option("--files <DIR>", "Take the files of the records from this folder: of export --files, or by their paths in it")
  .addOption(option("--map <NAMES>", 'Fields by names of the file, as "Column=field,Other=": an empty one drops it'))
  .addOption(option("--null <TEXTS>", 'Cells that are null where they are not quoted, as "NULL,n/a"'))
  .addOption(urlOption)
  .addOption(keyOption)
  .addOption(configOption)
  .addOption(dataOption)
  .action(async (table, file, options) => {
    const target = parseTarget(table);
    const reading = readingOf(options);
    const format = formatOf(file, ["json", "ndjson", "csv"]);
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats?.isFile() !== true) throw new CommandError(`There is no file ${file}`);
    const client = await openClient(options);
    const progress = createProgress(stats.size);
    const folder = options.files ?? null;
    const fields = folder === null ? [] : fileFieldsOf(await client.fieldTypes(target));
    const files = folder === null ? null : { folder, fields };
    const batches = createBatches(client, target, { isUpsert: options.upsert === true, files });
    try {
      const types = await typesFor(client, target, format);
      for await (const source of readRecords(file, format, types, reading)) {
        await batches.add(source);
        progress.show(source.bytesRead, batches.imported);
      }
      await batches.flush();
    } catch (cause) {
      if (!(cause instanceof CommandError)) throw cause;
      const loaded = `${plural(batches.imported, "record")} of the file ${batches.imported === 1 ? "is" : "are"} in ${target.name}`;
      throw new CommandError(`${cause.message}\n${loaded}`, { cause });
    } finally {
      progress.end();
      await client.close();
    }
    await printAnswer(`imported ${plural(batches.imported, "record")} into ${target.name}`);
  });

/** Parses `--map` and `--null`. Errors: UsageError. */
function readingOf({ map, null: nulls }: { map?: string | undefined; null?: string | undefined }): Reading {
  const pairs = (map === undefined ? [] : map.split(",")).map((pair): [string, string] => {
    const [column = "", field, ...rest] = pair.split("=").map((name) => name.trim());
    if (column === "" || field === undefined || rest.length > 0) {
      throw new UsageError(`--map must be names such as "Column=field,Other=", got "${pair}"`);
    }
    return [column, field];
  });
  const names = new Map(pairs);
  if (names.size < pairs.length) throw new UsageError("--map names a column twice");
  return { map: names, nulls: new Set(nulls?.split(",")) };
}

async function typesFor(client: Client, target: Target, format: Format): Promise<FieldTypes | null> {
  const types = await client.fieldTypes(target);
  if (types !== "unknown") return types;
  if (format !== "csv") return null;
  throw new CommandError(
    "CSV needs the declared types: the server's api.schemaEndpoint is off, and there is no config at --config",
  );
}

function createBatches(
  client: Client,
  target: Target,
  { isUpsert, files }: { isUpsert: boolean; files: { folder: string; fields: readonly string[] } | null },
) {
  const path = `${target.path}/batch${isUpsert ? "?upsert=true" : ""}`;
  let waiting: SourceRecord[] = [];
  let characters = 0;
  let imported = 0;

  const send = async (batch: readonly SourceRecord[]): Promise<void> => {
    const reply = await client.post(path, { inserts: batch.map(({ record }) => record) });
    if (reply.status === PAYLOAD_TOO_LARGE && batch.length > 1) {
      const middle = Math.ceil(batch.length / 2);
      await send(batch.slice(0, middle));
      await send(batch.slice(middle));
      return;
    }
    if (reply.status !== 200) throw refusal(reply, batch);
    imported += batch.length;
  };
  const flush = async (): Promise<void> => {
    const batch = waiting;
    waiting = [];
    characters = 0;
    if (batch.length > 0) await send(batch);
  };

  /** Sends a record with its files, which no batch takes. */
  const sendForm = async (source: SourceRecord, fields: readonly string[], folder: string): Promise<void> => {
    await flush();
    let form: FormData;
    try {
      form = formOf(source.record, fields, folder);
    } catch (cause) {
      throw new CommandError(`${source.place}: ${reasonOf(cause)}`, { cause });
    }
    const { status, body } = await client.postForm(`${target.path}${isUpsert ? "?upsert=true" : ""}`, form);
    if (status !== 200 && status !== 201) throw refusal({ status, body }, [source]);
    imported += 1;
  };

  return {
    /** The number of records that the server has acknowledged. */
    get imported(): number {
      return imported;
    },
    async add(source: SourceRecord): Promise<void> {
      if (files !== null && hasFiles(source.record, files.fields)) {
        return sendForm(source, files.fields, files.folder);
      }
      waiting.push(source);
      characters += JSON.stringify(source.record).length;
      if (waiting.length >= BATCH_RECORDS_MAX || characters >= BATCH_MAX_CHARACTERS) await flush();
    },
    flush,
  };
}

/** Names the invalid records by their place in the file: `inserts.3.title` is in the fourth record of the batch. */
function refusal(reply: Reply, batch: readonly SourceRecord[]): CommandError {
  const { data } = reply.body;
  const lines = Object.entries(isJsonObject(data) ? data : {}).flatMap(([path, problem]) => {
    const [, index, field] = /^inserts\.(\d+)(?:\.(.+))?$/.exec(path) ?? [];
    const source = index === undefined ? undefined : batch[Number(index)];
    if (source === undefined) return [];
    const message = isJsonObject(problem) ? String(problem["message"]) : "refused";
    const isFieldNamed = field === undefined || message.startsWith(field);
    return [`${source.place}: ${isFieldNamed ? "" : `${field}: `}${message}`];
  });
  if (lines.length > 0) return new CommandError(lines.join("\n"));
  try {
    requireOk(reply);
  } catch (cause) {
    const [first] = batch;
    const where = batch.length === 1 ? first?.place : `${first?.place} to ${batch.at(-1)?.place}`;
    return new CommandError(`${where}: ${reasonOf(cause)}`);
  }
  return new CommandError(`the server answered ${reply.status} to a batch`);
}
