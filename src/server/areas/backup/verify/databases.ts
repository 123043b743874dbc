import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as layouts from "../../../../../schema/migrations/index.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import { isEmptyFile, layOut, requireKnownVersion } from "../../../db/index.ts";
import { mayBeEmpty, objectPath, STORAGE_FOLDERS, STORED_TABLES, SYSTEM_FILE } from "../layout.ts";
import { DAMAGES_SHOWN_MAX } from "../limits.ts";
import { scanFiles } from "../scan.ts";

/** Checks every database of a restored data directory, and upgrades it as a start of the program would. */
export async function verifyDatabases(
  dataDirectory: string,
  signal: AbortSignal,
): Promise<{ databaseCount: number; problems: string[] }> {
  const problems: string[] = [];
  let databaseCount = 0;
  for (const { path, kind } of scanFiles(dataDirectory)) {
    if (kind !== "database") continue;
    databaseCount++;
    problems.push(...problemsOf(dataDirectory, path));
    // A check blocks this thread: a signal that arrived meanwhile is noticed here.
    await Bun.sleep(0);
    signal.throwIfAborted();
  }
  return { databaseCount, problems };
}

function problemsOf(dataDirectory: string, path: string): string[] {
  const file = join(dataDirectory, path);
  // SQLite takes it for a sound database, and the upgrade would give it tables. A start refuses it.
  if (isEmptyFile(file) && !mayBeEmpty(path))
    return [`${path}: it is empty (0 bytes): its data was lost before the backup was made`];
  try {
    using sqlite = new Database(file, { readwrite: true, create: false });
    const found = sqlite.query<{ integrity_check: string }, []>(`PRAGMA integrity_check(${DAMAGES_SHOWN_MAX})`).all();
    const damages = found.map((row) => row.integrity_check).filter((text) => text !== "ok");
    if (damages.length > 0) return damages.map((text) => `${path}: ${text}`);
    bringUpToDate(sqlite, path);
    return [];
  } catch (cause) {
    return [`${path}: ${reasonOf(cause)}`];
  }
}

/** Errors: a later version; a step fails. */
function bringUpToDate(sqlite: Database, path: string): void {
  const layout = layoutOf(path);
  if (layout === undefined) return;
  // The steps of an index need its dimensions, which only the config has.
  if (layout === layouts.vectorizeLayout) requireKnownVersion(sqlite, layout);
  else layOut(layout)(sqlite);
}

/** undefined: the files of d1 are laid out by their users. */
export function layoutOf(path: string): layouts.FileLayout | undefined {
  const [top = ""] = path.split("/");
  const name = top === "databases" ? "tables" : top.replace(/\.db$/, "");
  return Object.values(layouts).find((layout) => layout.name === name);
}

/** The number of stored contents that system.db names and that are not in the directory: those of buckets with a backend. */
export function countElsewhere(dataDirectory: string): number {
  using sqlite = new Database(join(dataDirectory, SYSTEM_FILE), { readonly: true });
  let missing = 0;
  for (const folder of STORAGE_FOLDERS) {
    const named = sqlite.query<{ fileId: string }, []>(`SELECT fileId FROM ${STORED_TABLES[folder]}`);
    for (const { fileId } of named.iterate()) {
      if (!existsSync(join(dataDirectory, objectPath(folder, fileId)))) missing++;
    }
  }
  return missing;
}
