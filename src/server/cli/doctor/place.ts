import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { readHistory } from "../../areas/backup/continuous/restore/history.ts";
import { restoreContinuous } from "../../areas/backup/continuous/restore/restore.ts";
import { openStore } from "../../areas/backup/continuous/store/store.ts";
import { type Finding, finding } from "./patient.ts";

/**
 * Restores the newest moment of the continuous backup that a config declares into a temporary folder, which reads and hashes everything
 * that it needs. null: none is declared.
 */
export async function checkPlace(configFile: string): Promise<Finding | null> {
  const { loadConfig } = await import("../../config/loading/load.ts");
  const { config } = await loadConfig(configFile, await import("../../../index.ts"));
  const continuous = config.backups?.continuous;
  if (continuous === undefined) return null;
  const store = openStore(continuous.to, systemClock);
  const { to, gaps, bytes } = await readHistory(store);
  const folder = mkdtempSync(join(tmpdir(), "platform-doctor-"));
  try {
    const dataDirectory = join(folder, "data");
    const { signal } = new AbortController();
    const restored = await restoreContinuous({ store, dataDirectory, at: null, only: [], signal, onProgress() {} });
    const problems = restored.missing.map((path) => `${path} is not stored yet`);
    const hasBackend = Object.values(config.storage?.buckets ?? {}).some(({ backend }) => backend !== undefined);
    if (restored.elsewhereCount > 0 && !hasBackend) {
      problems.push(`${restored.elsewhereCount} contents of files that system.db names are missing`);
    }
    return finding(problems, { to, files: restored.fileCount, bytes, gaps: gaps.length });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
