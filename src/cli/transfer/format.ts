import { extname } from "node:path";
import { UsageError } from "../usage-error.ts";

export type Format = "json" | "ndjson" | "csv";

const BY_EXTENSION: Readonly<Record<string, Format>> = {
  ".json": "json",
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".csv": "csv",
};

/** By the file's name. Errors: `UsageError` for any other ending. */
export function formatOf(file: string): Format {
  const format = BY_EXTENSION[extname(file).toLowerCase()];
  if (format === undefined) throw new UsageError(`"${file}" must end in ${Object.keys(BY_EXTENSION).join(", ")}`);
  return format;
}
