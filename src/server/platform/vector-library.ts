import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { embedsAny } from "../areas/tables/index.ts";
import type { PlatformConfig } from "../config/types.ts";
import { extensionFile } from "../db/vectors/extension.ts";
import type { Stoppable } from "./stopping.ts";

/** The library of vectors; its path is empty where nothing needs it. */
export interface VectorLibrary extends Stoppable {
  readonly path: string;
}

/** Places the library where tables or indexes have vectors. Errors: as `extensionFile`. */
export async function openVectorLibrary(config: PlatformConfig, dataDirectory: string): Promise<VectorLibrary> {
  const isNeeded = embedsAny(config.databases ?? {}) || Object.keys(config.vectorize ?? {}).length > 0;
  if (!isNeeded) return { path: "", stop() {} };
  const directory = join(dataDirectory, "vectorize");
  mkdirSync(directory, { recursive: true });
  const { path, remove } = await extensionFile(directory);
  return { path, stop: remove };
}

/** Returns the declared indexes with their defaults. */
export const vectorIndexes = ({ vectorize = {} }: PlatformConfig) =>
  Object.entries(vectorize).map(([name, index]) => ({ metric: "cosine" as const, ...index, name }));
