import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./platform.ts";

const CHUNK_BYTES = 64 * 1024;

/** A disk of its own that a test can fill without harm to anybody. */
export interface SmallDisk {
  readonly directory: string;
  /** Leaves no byte free. */
  fill(): void;
  /** Gives back what `fill` took. */
  free(): void;
  unmount(): void;
}

/** null where this process may not mount, which takes root; then a test cannot fill a disk honestly. */
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
