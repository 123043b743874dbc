import { readdirSync } from "node:fs";
import { join } from "node:path";
import { mayHaveOutboxRows } from "../../db/index.ts";

export interface ScanRequest {
  /** The directory of the `INSTANCE.db` files. */
  directory: string;
  /** The last file of the request before; "" for the first. */
  after: string;
  filesMax: number;
}

export interface ScanAnswer {
  instanceIds: string[];
  /** null: that was the last file. */
  last: string | null;
}

const ENDING = ".db";

/** Looks into the next instance files in order of name. Those that cannot be read count as having rows. */
export function scanSome({ directory, after, filesMax }: ScanRequest): ScanAnswer {
  const names = readdirSync(directory)
    .filter((name) => name.endsWith(ENDING) && name > after)
    .sort();
  const taken = names.slice(0, filesMax);
  const waiting = taken.filter((name) => mayHaveOutboxRows(join(directory, name)));
  const last = taken.length < names.length ? (taken.at(-1) ?? null) : null;
  return { instanceIds: waiting.map((name) => name.slice(0, -ENDING.length)), last };
}
