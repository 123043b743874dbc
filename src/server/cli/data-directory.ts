import { existsSync } from "node:fs";
import { join } from "node:path";
import { SYSTEM_FILE } from "../areas/backup/layout.ts";
import { DirectoryInUse, lockDirectory } from "../db/index.ts";
import { CommandError } from "./errors.ts";

/**
 * Checks that the data directory exists. For commands that read it: opening a mistyped path would create one. Errors: CommandError
 * if there is none at `path`.
 */
export function requireDataDirectory(path: string): void {
  if (!existsSync(path)) throw new CommandError(`There is no data directory at ${path}`);
  if (!existsSync(join(path, SYSTEM_FILE))) {
    throw new CommandError(`${path} is not a data directory: it has no ${SYSTEM_FILE}`);
  }
}

/** Whether a server, or a command that writes, uses the data directory. */
export function isInUse(dataDirectory: string): boolean {
  try {
    lockDirectory(dataDirectory).release();
    return false;
  } catch (cause) {
    if (cause instanceof DirectoryInUse) return true;
    throw cause;
  }
}
