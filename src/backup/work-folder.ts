import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { lockDirectory } from "../db/index.ts";
import { BackupError } from "./types.ts";

/** A folder for what is only needed on the way. It is locked while somebody uses it, so that others can tell. */
export interface WorkFolder {
  pathOf(name: string): string;
  /** Removes it with all that is in it. */
  remove(): void;
}

/** Makes the folder, after removing what a killed process has left of it. Errors: somebody is using it. */
export function claimWorkFolder(path: string): WorkFolder {
  sweepWorkFolder(path);
  if (existsSync(path)) throw new BackupError(`Another backup is under way in ${path}`);
  mkdirSync(path, { mode: 0o700 });
  const lock = lockDirectory(path);
  return {
    pathOf: (name) => join(path, name),
    remove() {
      lock.release();
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Removes a work folder that nobody uses any more; one in use stays. */
export function sweepWorkFolder(path: string): void {
  if (!existsSync(path)) return;
  try {
    lockDirectory(path).release();
  } catch {
    return;
  }
  rmSync(path, { recursive: true, force: true });
}
