import { once } from "node:events";
import { createWriteStream, renameSync, rmSync } from "node:fs";
import type { FieldType } from "../config/types.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { declareCommand } from "./command.ts";
import { outputFailure, printNote } from "./output.ts";
import { formatCell, formatRow } from "./transfer/csv-cells.ts";
import { type Door, doorOptions, openDoor, requireOk } from "./transfer/door.ts";
import { formatOf } from "./transfer/format.ts";
import { createProgress } from "./transfer/progress.ts";
import { parseTarget, type Target } from "./transfer/target.ts";
import { CommandError } from "./usage-error.ts";

/** Records per page: the most that a list gives. */
const PAGE_RECORDS = 1000;

export const exportCommand = declareCommand({
  meta: { name: "export", description: "Writes a table as NDJSON, or as CSV by the file's name" },
  args: {
    table: { type: "positional", description: "NAMESPACE/TABLE or NAMESPACE/INSTANCE/TABLE", required: true },
    file: {
      type: "positional",
      description: "A .ndjson, .jsonl or .csv file; standard output without",
      required: false,
    },
    ...doorOptions,
  },
  async run({ args }) {
    const target = parseTarget(args.table);
    const format = args.file === undefined ? "ndjson" : formatOf(args.file, ["ndjson", "csv"]);
    const door = await openDoor(args);
    try {
      const toText = format === "csv" ? await createCsv(door, target) : ndjson;
      const count = await writeRecords(door, target, toText, args.file ?? null);
      if (args.file !== undefined)
        await printNote(`wrote ${count} ${count === 1 ? "record" : "records"} to ${args.file}`);
    } finally {
      await door.close();
    }
  },
});

interface Format {
  /** What stands before the records. */
  head: string;
  format(record: JsonObject): string;
}

const ndjson: Format = { head: "", format: (record) => `${JSON.stringify(record)}\n` };

async function createCsv(door: Door, target: Target): Promise<Format> {
  const types = await door.fieldTypes(target);
  const columns =
    types === null || types === "unknown"
      ? await columnsOfRecords(door, target)
      : new Map<string, FieldType | undefined>(types);
  const names = [...columns.keys()];
  return {
    head: formatRow(names.map((name) => formatCell(name, undefined))),
    format: (record) => formatRow([...columns].map(([name, type]) => formatCell(record[name], type))),
  };
}

/** Where no schema says which fields there are, a first reading of the whole table does. */
async function columnsOfRecords(door: Door, target: Target): Promise<Map<string, FieldType | undefined>> {
  const columns = new Map<string, FieldType | undefined>([["id", "string"]]);
  for await (const { items } of pagesOf(door, target)) {
    for (const item of items) for (const name of Object.keys(item)) columns.set(name, undefined);
  }
  return columns;
}

interface Page {
  items: JsonObject[];
  /** Of the whole table; null but on the first page. */
  total: number | null;
}

async function* pagesOf(door: Door, target: Target): AsyncGenerator<Page> {
  let after = "";
  for (;;) {
    const body = requireOk(await door.get(`${target.path}?limit=${PAGE_RECORDS}${after}`));
    const items = Array.isArray(body["items"]) ? body["items"].filter(isJsonObject) : [];
    yield { items, total: typeof body["total"] === "number" ? body["total"] : null };
    const { cursor } = body;
    if (body["hasMore"] !== true || typeof cursor !== "string") return;
    after = `&after=${encodeURIComponent(cursor)}`;
  }
}

/** A file takes its name when it is whole: what an interrupted export leaves behind is not taken for one. */
async function writeRecords(
  door: Door,
  target: Target,
  { head, format }: Format,
  file: string | null,
): Promise<number> {
  const temporary = file === null ? null : `${file}.${process.pid}.part`;
  const output = temporary === null ? process.stdout : createWriteStream(temporary);
  // Each write tells its own failure; without a listener the stream's event would end the process first.
  output.on("error", () => {});
  // A bar would be written over by records on the same terminal.
  const isBarInTheWay = file === null && process.stdout.isTTY === true;
  let count = 0;
  let progress = createProgress(0);
  try {
    if (head !== "") await write(output, head);
    for await (const { items, total } of pagesOf(door, target)) {
      if (total !== null && !isBarInTheWay) progress = createProgress(total);
      await write(output, items.map(format).join(""));
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

/** Returns when the stream has taken the text, so that a slow reader is not overrun. */
function write(stream: NodeJS.WritableStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (cause) => (cause ? reject(cause) : resolve()));
  });
}
