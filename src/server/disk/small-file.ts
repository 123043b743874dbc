import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf } from "../../kernel/errors.ts";
import { syncDirectorySync } from "./directory-names.ts";

const OWNER_ONLY = 0o600;

/**
 * Replaces a small file, which by default its owner alone may read. Durable when it returns; a crash leaves the old file or the new
 * one, never a part, and at most a temporary file `PATH.PID.new` beside it, which an error (a full disk) does not leave.
 */
export function replaceSmallFile(path: string, content: string | Uint8Array, mode: number = OWNER_ONLY): void {
  const temporary = `${path}.${process.pid}.new`;
  // An earlier process with this id may have left one, and an existing file would keep its own mode.
  rmSync(temporary, { force: true });
  try {
    writeSynced(temporary, content, mode);
    renameSync(temporary, path);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw cause;
  }
  syncDirectorySync(dirname(path));
}

function writeSynced(path: string, content: string | Uint8Array, mode: number): void {
  const descriptor = openSync(path, "wx", mode);
  try {
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Removes the temporary files in a folder whose process has ended, as after a SIGKILL: some hold secrets. */
export function removeLeftovers(folder: string): void {
  for (const name of namesIn(folder)) {
    const writer = Number(/\.(\d+)\.new$/.exec(name)?.[1] ?? Number.NaN);
    // This process is not writing one: writes are synchronous.
    if (writer === process.pid || hasEnded(writer)) rmSync(join(folder, name), { force: true });
  }
}

/** Lists the names in a folder; none for a missing folder. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Reports whether a process has ended; false for a number that is no process id. */
function hasEnded(pid: number): boolean {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (cause) {
    return codeOf(cause) === "ESRCH";
  }
}
