import { createWriteStream, mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { openPromise } from "yauzl";
import { reasonOf } from "../../../../kernel/errors.ts";
import { CommandError } from "../../errors.ts";

/** The files of a backup that a move reads. */
const WANTED = /^(?:data\.db(?:-wal)?$|storage\/.*[^/]$)/;

/** Bytes of the disk that stay free: an archive may declare any size in a few bytes. */
const DISK_RESERVE_BYTES = 256 * 1024 * 1024;

/** Unpacked contents of a backup, removed by `dispose`. */
export interface Unpacked {
  folder: string;
  dispose(): void;
}

/**
 * Unpacks a backup zip into a temporary folder that nobody else reads. Errors: CommandError for a file that is no zip, is damaged, or
 * is larger than the disk has room for.
 */
export async function unpackBackup(file: string): Promise<Unpacked> {
  const folder = mkdtempSync(join(tmpdir(), "platform-migrate-"));
  const dispose = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    // The library refuses names that lead out of the folder, and contents of another size than declared.
    const zip = await openPromise(file, { lazyEntries: true, strictFileNames: true });
    const room = roomIn(folder);
    let bytes = 0;
    for await (const entry of zip.eachEntry()) {
      if (!WANTED.test(entry.fileName)) continue;
      bytes += entry.uncompressedSize;
      if (bytes > room)
        throw new Error(
          `it has more than ${room} bytes, for which ${tmpdir()} has no room: TMPDIR names another folder`,
        );
      const path = join(folder, entry.fileName);
      mkdirSync(dirname(path), { recursive: true });
      await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(path, { flags: "wx" }));
    }
    return { folder, dispose };
  } catch (cause) {
    dispose();
    throw new CommandError(`${file} cannot be unpacked: ${reasonOf(cause)}`, { cause });
  }
}

/** Returns the bytes that may be written beside a folder. */
function roomIn(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return Math.max(bavail * bsize - DISK_RESERVE_BYTES, 0);
}
