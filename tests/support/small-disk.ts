import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./platform.ts";

const CHUNK_BYTES = 64 * 1024;

/** Separate disk that a test can fill harmlessly. */
export interface SmallDisk {
  readonly directory: string;
  /** Fills the disk to the last byte. */
  fill(): void;
  /** Frees what `fill` took. */
  free(): void;
  unmount(): void;
}

/** Mounts a small disk; null if this process may not, which takes root. A test cannot really fill a disk then. */
export function mountSmallDisk(sizeMib: number): SmallDisk | null {
  if (process.platform !== "linux") return null;
  const directory = temporaryDirectory();
  const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${sizeMib}m`, "tmpfs", directory]);
  if (!mounted.success) return null;
  const ballast = join(directory, "ballast");
  return {
    directory,
    fill() {
      const descriptor = openSync(ballast, "a");
      try {
        for (let sizeBytes = CHUNK_BYTES; sizeBytes >= 1; ) {
          try {
            if (writeSync(descriptor, Buffer.alloc(sizeBytes)) < sizeBytes) sizeBytes = Math.floor(sizeBytes / 2);
          } catch (cause) {
            if (!(cause instanceof Error && "code" in cause && cause.code === "ENOSPC")) throw cause;
            sizeBytes = Math.floor(sizeBytes / 2);
          }
        }
      } finally {
        closeSync(descriptor);
      }
    },
    free: () => rmSync(ballast, { force: true }),
    unmount() {
      Bun.spawnSync(["umount", "--lazy", directory]);
    },
  };
}
