import { type Dirent, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type FileKind, FOLDERS, kindOf } from "./layout.ts";

export interface FoundFile {
  /** Relative to the data directory, with `/`. */
  path: string;
  kind: FileKind;
}

/** The files under `folder` of a data directory (empty: all), with the names of one folder in memory at a time. */
export function* scanFiles(dataDirectory: string, folder = ""): Generator<FoundFile> {
  for (const entry of entriesOf(join(dataDirectory, folder))) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    const kind = kindOf(path);
    if (kind === "passing") continue;
    if (!isFolder(dataDirectory, path, entry)) yield { path, kind };
    else if (folder !== "" || FOLDERS.has(entry.name)) yield* scanFiles(dataDirectory, path);
    else yield { path: `${path}/`, kind: "stranger" };
  }
}

/** A folder may be a link to another disk. A removed one is not a folder. */
function isFolder(dataDirectory: string, path: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return statSync(join(dataDirectory, path), { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** In order of name; none for a missing folder. */
function entriesOf(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true }).sort((one, other) => (one.name < other.name ? -1 : 1));
  } catch (cause) {
    if (isMissing(cause)) return [];
    throw cause;
  }
}

/** Whether an error has this code. */
export const hasCode = (cause: unknown, code: string): boolean =>
  cause instanceof Error && "code" in cause && cause.code === code;

export const isMissing = (cause: unknown): boolean => hasCode(cause, "ENOENT");
