import { extname } from "node:path";
import { UsageError } from "../errors.ts";

export interface Target {
  /** The target as given: `shared/films`. */
  name: string;
  namespace: string;
  table: string;
  /** The path of the API: `/api/db/…/tables/TABLE`. */
  path: string;
}

/** Parses `NAMESPACE/TABLE` or `NAMESPACE/INSTANCE/TABLE`. Errors: `UsageError`. */
export function parseTarget(name: string): Target {
  const parts = name.split("/");
  const [namespace = "", second = "", third] = parts;
  if (parts.length < 2 || parts.length > 3 || parts.includes("")) {
    throw new UsageError(`"${name}" must be NAMESPACE/TABLE, or NAMESPACE/INSTANCE/TABLE`);
  }
  const table = third ?? second;
  const instance = third === undefined ? "" : `/${encodeURIComponent(second)}`;
  const path = `/api/db/${encodeURIComponent(namespace)}${instance}/tables/${encodeURIComponent(table)}`;
  return { name, namespace, table, path };
}

export type Format = "json" | "ndjson" | "csv";

const BY_EXTENSION: Readonly<Record<string, Format>> = {
  ".json": "json",
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".csv": "csv",
};

/** Returns the format by the file's extension. Errors: `UsageError` for any other format. */
export function formatOf<Allowed extends Format>(file: string, formats: readonly Allowed[]): Allowed {
  const found = BY_EXTENSION[extname(file).toLowerCase()];
  const format = formats.find((allowed) => allowed === found);
  if (format !== undefined) return format;
  const endings = Object.entries(BY_EXTENSION).flatMap(([ending, one]) =>
    formats.some((allowed) => allowed === one) ? [ending] : [],
  );
  throw new UsageError(`"${file}" must end in ${endings.join(", ")}`);
}
