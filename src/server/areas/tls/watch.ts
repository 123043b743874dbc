import { statSync } from "node:fs";
import type { Clock } from "../../../kernel/clock.ts";
import { FILES_LOOK_MS } from "./limits.ts";

/**
 * Calls `onChange` when one of the files has changed since the watch was created, and again until it returns true: another program
 * may be writing. It polls every few seconds, because directory links, which container secrets use, are replaced without an event.
 */
export class FileWatch {
  readonly #paths: readonly string[];
  readonly #clock: Clock;
  readonly #onChange: () => boolean;
  #seen: string;
  /** Whether the latest change is still unapplied. */
  #isBehind = false;
  #cancel: () => void = () => {};

  constructor(paths: readonly string[], deps: { clock: Clock; onChange: () => boolean }) {
    this.#paths = paths;
    this.#clock = deps.clock;
    this.#onChange = deps.onChange;
    this.#seen = this.#fingerprint();
  }

  start(): void {
    this.#cancel = this.#clock.after(FILES_LOOK_MS, () => {
      this.look();
      this.start();
    });
  }

  /** Checks immediately. */
  look(): void {
    const now = this.#fingerprint();
    // Applies also when the previous files are back.
    if (now === this.#seen && !this.#isBehind) return;
    this.#isBehind = !this.#onChange();
    if (!this.#isBehind) this.#seen = now;
  }

  stop(): void {
    this.#cancel();
  }

  #fingerprint(): string {
    return this.#paths.map(fingerprint).join("\n");
  }
}

/**
 * Returns a fingerprint that changes with every write and with the file's owner; empty for a missing file. That of a file that
 * cannot be read, as while links are replaced, differs from every other.
 */
function fingerprint(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? "" : `${stats.mtimeMs} ${stats.size} ${stats.ino} ${stats.uid}`;
  } catch (cause) {
    return String(cause);
  }
}
