import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { openPromise } from "yauzl";
import { reasonOf } from "../../../../kernel/errors.ts";
import { CommandError } from "../../errors.ts";

/** The files of a backup that a move reads. */
const WANTED = /^(?:data\.db(?:-wal)?$|storage\/.*[^/]$)/;

/** Unpacked contents of a backup, removed by `dispose`. */
export interface Unpacked {
  folder: string;
  dispose(): void;
}

/** Unpacks a backup zip into a temporary folder that nobody else reads. Errors: CommandError for a file that is no zip, or is damaged. */
export async function unpackBackup(file: string): Promise<Unpacked> {
  const folder = mkdtempSync(join(tmpdir(), "platform-migrate-"));
  const dispose = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    // The library refuses names that lead out of the folder, and contents of another size than declared.
    const zip = await openPromise(file, { lazyEntries: true, strictFileNames: true });
    for await (const entry of zip.eachEntry()) {
      if (!WANTED.test(entry.fileName)) continue;
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
