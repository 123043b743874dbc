import { SYNC_UNREAD_MS, SYNCS_UNREAD_MAX_CHARS } from "../limits.ts";

/**
 * Bounds the large `sync` messages that are sent and not read yet: a further one waits until clients have read theirs.
 * Connections share the text of a message that waits; a message that is sent is a copy in the buffer of its socket.
 */
export class SyncTurns {
  readonly #after: (delayMs: number, work: () => void) => () => void;
  readonly #waiting = new Set<() => void>();
  #chars = 0;

  constructor(after: (delayMs: number, work: () => void) => () => void) {
    this.#after = after;
  }

  /**
   * null: the message has to wait, and `resume` will be called. Otherwise it may be sent; call the function returned when
   * the client has read it, and at the latest when the connection closes.
   */
  begin(chars: number, resume: () => void): (() => void) | null {
    if (this.#chars > 0 && this.#chars + chars > SYNCS_UNREAD_MAX_CHARS) {
      this.#waiting.add(resume);
      return null;
    }
    this.#chars += chars;
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      cancel();
      this.#chars -= chars;
      this.#resume();
    };
    const cancel = this.#after(SYNC_UNREAD_MS, end);
    return end;
  }

  /** The connection of `resume` has closed. */
  forget(resume: () => void): void {
    this.#waiting.delete(resume);
  }

  /** Messages that still do not fit wait again, behind the others. */
  #resume(): void {
    for (const resume of [...this.#waiting]) {
      if (this.#chars >= SYNCS_UNREAD_MAX_CHARS) return;
      this.#waiting.delete(resume);
      resume();
    }
  }
}
