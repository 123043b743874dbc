import type { Database } from "bun:sqlite";
import { AppError } from "../../../kernel/errors.ts";
import { readMeta, writeMeta } from "../meta.ts";
import type { Commits } from "../writer/commit-gate.ts";

/** On a case-insensitive file system, two instances could have the same file, and so the same records. */
export function assertIdentity(sqlite: Database, instanceId: string, commits: Commits): void {
  const owner = readMeta(sqlite, "instance");
  if (owner === null) commits.transaction(() => writeMeta(sqlite, "instance", instanceId));
  else if (owner !== instanceId) {
    throw new AppError(409, `The instance "${instanceId}" has the same file name as "${owner}" on this file system`);
  }
}
