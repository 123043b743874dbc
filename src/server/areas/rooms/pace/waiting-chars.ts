import { MAILBOX_MAX_CHARS, MAILBOXES_MAX_CHARS } from "../limits.ts";

/** Characters of messages that wait in the mailboxes of all rooms. */
export interface AllWaitingChars {
  chars: number;
}

/** Characters of messages that wait in one room's mailbox. They count in all rooms together as well. */
export class WaitingChars {
  readonly #all: AllWaitingChars;
  #own = 0;

  constructor(all: AllWaitingChars) {
    this.#all = all;
  }

  /** false: they exceed the bound. */
  take(chars: number): boolean {
    if (this.#own + chars > MAILBOX_MAX_CHARS || this.#all.chars + chars > MAILBOXES_MAX_CHARS) return false;
    this.#own += chars;
    this.#all.chars += chars;
    return true;
  }

  give(chars: number): void {
    this.#own -= chars;
    this.#all.chars -= chars;
  }
}
