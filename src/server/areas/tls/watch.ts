import { statSync } from "node:fs";
import type { Clock } from "../../../kernel/clock.ts";
import { FILES_LOOK_MS } from "./limits.ts";

/**
 * Calls `onChange` when one of the files has changed since the watch was made, and again until it returns true: another program may
 * be writing. It looks every few seconds, because links of directories, which secrets of containers are, are replaced without an event.
 */
export class FileWatch {
  readonly #paths: readonly string[];
  readonly #clock: Clock;
  readonly #onChange: () => boolean;
  #seen: string;
  /** The latest change was not taken over. */
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

  /** Without waiting for its time. */
  look(): void {
    const now = this.#fingerprint();
    // Also where the files of before are back.
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
 * Changes with every write and with the file's owner; empty for a missing file. One that cannot be looked at, as while links are
 * replaced, differs from every other.
 */
function fingerprint(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? "" : `${stats.mtimeMs} ${stats.size} ${stats.ino} ${stats.uid}`;
  } catch (cause) {
    return String(cause);
  }
}
