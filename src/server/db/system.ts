import { join } from "node:path";
import { systemLayout } from "../../../schema/migrations/index.ts";
import { layOut } from "./migrations.ts";
import type { OpenedFile, OutboxOptions, StorageEngine } from "./types.ts";

export const SYSTEM_FILE = "system.db";

/** Opens `system.db`, the file of the server's own tables in `schema/`. The directory must exist. */
export function openSystemFile(engine: StorageEngine, dataDirectory: string, outbox?: OutboxOptions): OpenedFile {
  return engine.open(join(dataDirectory, SYSTEM_FILE), { migrate: layOut(systemLayout), outbox });
}
