import { readdirSync } from "node:fs";
import { join } from "node:path";
import { mayHaveOutboxRows } from "../../db/index.ts";
import { serveJobs } from "../../db/processes/program.ts";

/** Starts the program of the process that scans for instance files with waiting rows. [TG9] */
export function start(): void {
  serveJobs<ScanRequest>({ run: scanSome, failureOf: String });
}

export interface ScanRequest {
  /** The directory of the `INSTANCE.db` files. */
  directory: string;
  /** Cursor: the last file of the previous request; "" for the first. */
  after: string;
  filesMax: number;
}

export interface ScanAnswer {
  instanceIds: string[];
  /** Cursor of the next request; null: there are no more files. */
  last: string | null;
}

const ENDING = ".db";

/** Scans the next instance files in order of name. Files that cannot be read count as having rows. */
export function scanSome({ directory, after, filesMax }: ScanRequest): ScanAnswer {
  const names = readdirSync(directory)
    .filter((name) => name.endsWith(ENDING) && name > after)
    .sort();
  const taken = names.slice(0, filesMax);
  const waiting = taken.filter((name) => mayHaveOutboxRows(join(directory, name)));
  const last = taken.length < names.length ? (taken.at(-1) ?? null) : null;
  return { instanceIds: waiting.map((name) => name.slice(0, -ENDING.length)), last };
}
