import type { FollowedFiles } from "../../cluster/membership/member.ts";
import type { LogEntry, Place } from "../../cluster/protocol/statements.ts";

/** Bytes of entries that wait while a node turns from owner to follower: by then another node may long have written. */
const WAITING_MAX_BYTES = 256 * 1024 * 1024;

/** Files of a node through its roles: what the log says of them while this process writes them itself waits until it follows again. */
export class TurningFiles implements FollowedFiles {
  readonly #onOverflow: () => void;
  #files: FollowedFiles | null;
  #waiting: LogEntry[] = [];
  #waitingBytes = 0;
  #isSetAside = false;
  /** Place behind which the log begins that waits for the files; null: they have it, or need none. */
  #base: Place | null = null;

  /** `onOverflow`: more waits than memory should have. */
  constructor(files: FollowedFiles, { onOverflow }: { onOverflow: () => void }) {
    this.#files = files;
    this.#onOverflow = onOverflow;
  }

  get place(): Place {
    return this.#files?.place ?? { position: 0, nonce: "" };
  }

  /** Whether the files have to begin anew at the start of the log, because they hold what it does not. */
  get isSetAside(): boolean {
    return this.#isSetAside;
  }

  apply(entries: readonly LogEntry[]): void {
    if (this.#files !== null) {
      this.#files.apply(entries);
      return;
    }
    this.#waiting.push(...entries);
    for (const { body } of entries) for (const { content } of body) this.#waitingBytes += content.byteLength;
    if (this.#waitingBytes > WAITING_MAX_BYTES) this.#onOverflow();
  }

  setAside(): void {
    if (this.#files !== null) {
      this.#files.setAside();
      return;
    }
    this.#isSetAside = true;
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  rebase(base: Place): void {
    if (this.#files !== null) {
      this.#files.rebase(base);
      return;
    }
    this.setAside();
    this.#base = base;
  }

  /** Whether what waits leaves room for more. */
  get hasRoom(): boolean {
    return this.#files?.hasRoom ?? this.#waitingBytes < WAITING_MAX_BYTES / 2;
  }

  /** Gives the files to somebody else, who writes them. */
  give(): void {
    this.#files = null;
    this.#isSetAside = false;
    this.#base = null;
  }

  /** Takes them back, with what has waited. */
  take(files: FollowedFiles): void {
    this.#files = files;
    if (this.#isSetAside) files.setAside();
    if (this.#base !== null) files.rebase(this.#base);
    this.#base = null;
    this.#isSetAside = false;
    if (this.#waiting.length > 0) files.apply(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
