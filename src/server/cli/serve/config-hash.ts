import { readFileSync, statSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { VERSION } from "../../../kernel/version.ts";
import { envFileOf } from "../../config/loading/env-file.ts";
import { importedFiles } from "../../config/loading/imported-files.ts";
import { ownProduct } from "../../config/loading/product.ts";
import type { PlatformConfig } from "../../config/types.ts";
import type { PlatformOptions } from "../../platform/base.ts";
import type { LogForm } from "../logs.ts";

/** Characters of the hash by which nodes compare their configs. */
const HASH_LENGTH = 16;

/** Returns the files of a config: those that it imports, and its variables. */
const filesOf = (file: string): string[] =>
  [...(ownProduct() === null ? importedFiles(file) : []), envFileOf(file)].toSorted();

/** Returns a hash of the files of a config. A process that loads it has the same rules while it is equal. */
export function hashOfConfig(file: string): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const path of filesOf(file)) hash.update(`${path}\0`).update(contentOf(path)).update("\0");
  return hash.digest("base64");
}

/** Returns a hash of a config that is the same on every node of a cluster with the same files, wherever they are. */
export function clusterHashOf(file: string): string {
  if (ownProduct() !== null) return `${VERSION} ${ownProduct()?.version ?? ""}`;
  const folder = dirname(resolve(file));
  const hash = new Bun.CryptoHasher("sha256");
  const paths = importedFiles(file).map((path) => [relative(folder, path), path] as const);
  for (const [name, path] of paths.toSorted(([one], [other]) => (one < other ? -1 : 1)))
    hash
      .update(`${path === resolve(file) ? "" : name}\0`)
      .update(contentOf(path))
      .update("\0");
  return hash.digest("hex").slice(0, HASH_LENGTH);
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
