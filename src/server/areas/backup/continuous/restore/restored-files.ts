import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

const LOG = "restored.jsonl";
const FILES = "files";

/**
 * The files of an unfinished restore, and a log of those that are whole and on the disk. What a kill has left of the same moment is
 * taken over; of another one it is removed.
 */
export class RestoredFiles {
  /** Folder of the files. */
  readonly folder: string;
  readonly #done = new Map<string, number>();
  readonly #log: number;

  /** `moment`: names the moment, and what of it is wanted. */
  constructor(directory: string, moment: string) {
    this.folder = join(directory, FILES);
    const log = join(directory, LOG);
    const [first, ...lines] = existsSync(log) ? readFileSync(log, "utf8").split("\n") : [];
    const isSame = first === JSON.stringify(moment);
    if (!isSame) rmSync(directory, { recursive: true, force: true });
    mkdirSync(this.folder, { recursive: true });
    for (const line of isSame ? lines : []) this.#take(line);
    this.#log = openSync(log, "a", 0o600);
    // Whatever a kill has left of a last line ends here.
    this.#write(isSame ? "" : JSON.stringify(moment));
  }

  /** Whether a file is there, by its path in the data directory. One that is not whole is removed. */
  has(path: string): boolean {
    const file = join(this.folder, path);
    const bytes = statSync(file, { throwIfNoEntry: false })?.size;
    if (bytes !== undefined && this.#done.get(path) === bytes) return true;
    for (const ending of ["", "-wal", "-shm", ".copy"]) rmSync(`${file}${ending}`, { force: true });
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return false;
  }

  /** Takes note that files are whole and on the disk. The log needs no sync: what a power cut takes from it is restored again. */
  add(paths: readonly string[]): void {
    const lines = paths.map((path) => JSON.stringify([path, statSync(join(this.folder, path)).size]));
    if (lines.length > 0) this.#write(lines.join("\n"));
  }

  close(): void {
    closeSync(this.#log);
  }

  #write(text: string): void {
    writeSync(this.#log, `${text}\n`);
  }

  #take(line: string): void {
    try {
      // Written by `add`, or cut off by a kill.
      const [path, bytes] = JSON.parse(line) as [string, number];
      this.#done.set(path, bytes);
    } catch {
      // The file is restored again.
    }
  }
}
