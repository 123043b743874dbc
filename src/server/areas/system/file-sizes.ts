import { stat } from "node:fs/promises";
import type { Clock } from "../../../kernel/clock.ts";
import { FILE_SIZES_KEPT_MS, FILES_PER_TURN } from "./limits.ts";

export interface FileSizes {
  /** Of the database files and their WALs together. */
  bytes: number;
  walBytes: number;
}

/** Measures the open database files, off the event loop. Figures are kept for a while. */
export function createFileSizes(deps: { clock: Clock; paths: () => string[] }): () => Promise<FileSizes> {
  const { clock, paths } = deps;
  let kept: { at: number; sizes: Promise<FileSizes> } | null = null;
  return () => {
    const now = clock.now();
    if (kept === null || Math.abs(now - kept.at) >= FILE_SIZES_KEPT_MS) kept = { at: now, sizes: measure(paths()) };
    return kept.sizes;
  };
}

async function measure(paths: readonly string[]): Promise<FileSizes> {
  const sizes: FileSizes = { bytes: 0, walBytes: 0 };
  for (let at = 0; at < paths.length; at += FILES_PER_TURN) {
    const some = paths.slice(at, at + FILES_PER_TURN);
    const [files, wals] = await Promise.all([sum(some), sum(some.map((path) => `${path}-wal`))]);
    sizes.bytes += files + wals;
    sizes.walBytes += wals;
  }
  return sizes;
}

/** A file that has been closed and removed meanwhile counts as empty. */
async function sum(paths: readonly string[]): Promise<number> {
  const sizes = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((total, size) => total + size, 0);
}
