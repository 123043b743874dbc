import { readFileSync, statSync } from "node:fs";
import { envFileOf } from "../../config/loading/env-file.ts";
import { importedFiles } from "../../config/loading/imported-files.ts";
import { ownProduct } from "../../config/loading/product.ts";
import type { PlatformConfig } from "../../config/types.ts";
import type { PlatformOptions } from "../../platform/base.ts";
import type { LogForm } from "../logs.ts";

/** Returns the files of a config: those that it imports, and its variables. */
const filesOf = (file: string): string[] =>
  [...(ownProduct() === null ? importedFiles(file) : []), envFileOf(file)].toSorted();

/** Returns a hash of the files of a config. A process that loads it has the same rules while it is equal. */
export function hashOfConfig(file: string): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const path of filesOf(file)) hash.update(`${path}\0`).update(contentOf(path)).update("\0");
  return hash.digest("base64");
}

/** Returns the content of a file; nothing for one that cannot be read. */
function contentOf(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch {
    return new Uint8Array();
  }
}

/**
 * Returns how a worker loads the same config; undefined: there are none. `beganAt`: the time before the config was loaded. A file that
 * has changed between then and the first worker may not be the one that was loaded: no worker then has the hash.
 */
export function workersOf(
  config: PlatformConfig,
  { file, log, beganAt }: { file: string; log: LogForm | undefined; beganAt: number },
): PlatformOptions["workers"] {
  if (config.server?.workers === 0) return undefined;
  const changedAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0;
  const args = [`--config=${file}`, ...(log === undefined ? [] : [`--log=${log}`])];
  const isAsLoaded = (): boolean => filesOf(file).every((path) => changedAt(path) < beganAt);
  return { args, configHash: () => (isAsLoaded() ? hashOfConfig(file) : "changed") };
}
