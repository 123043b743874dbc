import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { CommandError } from "../../errors.ts";

const FOLDER_MODE = 0o700;
const WRITTEN_TOGETHER_CHARACTERS = 256 * 1024;

/** Makes the folder of an export, which others on the machine cannot read: it has hashes of passwords. Errors: it has something in it. */
export function claimFolder(folder: string): void {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats?.isDirectory() === false) throw new CommandError(`${folder} is not a folder`);
  if (stats !== undefined && readdirSync(folder).length > 0) {
    throw new CommandError(`${folder} is not empty: name a new folder`);
  }
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  chmodSync(folder, FOLDER_MODE);
}

/** Removes what a failed export has written. */
export function emptyFolder(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
}

/** A text file that is written in pieces. */
export class TextFile {
  readonly #file: number;
  #waiting = "";

  constructor(path: string) {
    mkdirSync(dirname(path), { recursive: true });
    this.#file = openSync(path, "wx");
  }

  write(text: string): void {
    this.#waiting += text;
    if (this.#waiting.length > WRITTEN_TOGETHER_CHARACTERS) this.#flush();
  }

  /** Writes what waits, and closes the file. */
  end(): void {
    this.#flush();
    closeSync(this.#file);
  }

  #flush(): void {
    const bytes = Buffer.from(this.#waiting);
    for (let at = 0; at < bytes.byteLength; ) at += writeSync(this.#file, bytes, at);
    this.#waiting = "";
  }
}
