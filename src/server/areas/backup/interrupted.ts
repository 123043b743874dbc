import { existsSync } from "node:fs";
import { join } from "node:path";
import { RESTORE_FOLDER } from "./layout.ts";
import { BackupError } from "./types.ts";

/** Errors: a restore into this data directory was interrupted, so it is incomplete. */
export function requireWhole(dataDirectory: string): void {
  if (!existsSync(join(dataDirectory, RESTORE_FOLDER))) return;
  throw new BackupError(
    `A restore into ${dataDirectory} was interrupted: run "platform restore" again, or use another directory`,
  );
}
