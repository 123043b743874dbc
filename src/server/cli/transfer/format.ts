import { extname } from "node:path";
import { UsageError } from "../errors.ts";

export type Format = "json" | "ndjson" | "csv";

const BY_EXTENSION: Readonly<Record<string, Format>> = {
  ".json": "json",
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".csv": "csv",
};

/** By the file's name. Errors: `UsageError` for any other format. */
export function formatOf<Allowed extends Format>(file: string, formats: readonly Allowed[]): Allowed {
  const found = BY_EXTENSION[extname(file).toLowerCase()];
  const format = formats.find((allowed) => allowed === found);
  if (format !== undefined) return format;
  const endings = Object.entries(BY_EXTENSION).flatMap(([ending, one]) =>
    formats.some((allowed) => allowed === one) ? [ending] : [],
  );
  throw new UsageError(`"${file}" must end in ${endings.join(", ")}`);
}
