import type { TurnBudget } from "../../../../kernel/time/turn-budget.ts";
import { SEND_MS, SENT_CHARS_PER_MS, SYNC_AT_ONCE_BYTES, SYNC_UNREAD_MS, SYNCS_UNREAD_MAX_CHARS } from "../limits.ts";

/** Kind of a text. A delta is useless without the `sync` before it; answers and messages are not. */
type Kind = "sync" | "delta" | "other";

interface Waiting {
  text: string;
  kind: Kind;
}

interface OutboxDeps {
  turn: TurnBudget;
  syncs: SyncTurns;
  /** Writes the text to the socket. */
  write: (text: string) => void;
  /** Resolves when the client has read everything sent, or the connection has ended. */
  whenRead: () => Promise<void>;
  /** Called when more than `charsMax` characters wait here. */
  onFull: () => void;
  charsMax: number;
}

/**
 * Queue of texts for one connection, in order. They wait for a `sync` in the making, so that nothing precedes it, and for a turn
 * of the event loop with time left.
 */
export class Outbox {
  readonly #deps: OutboxDeps;
  /** Texts that follow a `sync` in the making; null when none is being made. */
  #held: Waiting[] | null = null;
  #queue: Waiting[] = [];
  #chars = 0;
  #isSynced = false;
  #isPaused = false;

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  /** Characters of the waiting texts. */
  get chars(): number {
    return this.#chars;
  }

  send(text: string, kind: Kind = "other"): void {
    if (this.#held === null && this.#queue.length === 0 && this.#deps.turn.hasTime && !this.#isPaused) {
      this.#put(text, kind);
      return;
    }
    const isIdle = this.#queue.length === 0;
    (this.#held ?? this.#queue).push({ text, kind });
    this.#chars += text.length;
    if (this.#chars > this.#deps.charsMax) this.#deps.onFull();
    else if (this.#held === null && isIdle) this.#deps.turn.wait(this.#pump);
  }

  hold(): void {
    this.#held ??= [];
  }

  release(syncText: string): void {
    const held = this.#held ?? [];
    this.#held = null;
    this.#chars += syncText.length;
    const isIdle = this.#queue.length === 0;
    this.#queue.push({ text: syncText, kind: "sync" }, ...held);
    if (isIdle) this.#pump();
  }

  /** Holds texts until `resume`, while the client's right to them is re-evaluated. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#queue.length > 0) this.#pump();
  }

  /**
   * Sends the waiting texts before the connection closes. After an unsent `sync`, only answers and messages are sent, and not
   * even these when it is the first `sync` of the connection.
   */
  finish(): void {
    if (this.#isPaused) {
      this.clear();
      return;
    }
    const waiting = [...this.#queue];
    if (this.#held !== null) waiting.push({ text: "", kind: "sync" }, ...this.#held);
    this.clear();
    let isBehindSync = false;
    for (const one of waiting) {
      isBehindSync ||= one.kind === "sync";
      if (!isBehindSync || (this.#isSynced && one.kind === "other")) this.#put(one.text, one.kind);
    }
  }

  /** Drops the waiting texts. */
  clear(): void {
    this.#held = null;
    this.#queue = [];
    this.#chars = 0;
    this.#deps.syncs.forget(this.#pump);
  }

  readonly #pump = (): void => {
    if (this.#isPaused) return;
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      if (!this.#deps.turn.hasTime) {
        this.#deps.turn.wait(this.#pump);
        return;
      }
      const isLarge = next.kind === "sync" && next.text.length > SYNC_AT_ONCE_BYTES;
      const end = isLarge ? this.#deps.syncs.begin(next.text.length, this.#pump) : null;
      if (isLarge && end === null) return;
      this.#queue.shift();
      this.#chars -= next.text.length;
      this.#put(next.text, next.kind);
      if (end !== null) void this.#deps.whenRead().then(end);
    }
  };

  #put(text: string, kind: Kind): void {
    if (kind === "sync") this.#isSynced = true;
    this.#deps.turn.charge(SEND_MS + text.length / SENT_CHARS_PER_MS);
    this.#deps.write(text);
  }
}

/**
 * Bounds the large `sync` messages that are sent and unread: a further one waits until clients have read theirs. A waiting
 * message shares its text with other connections; a sent one is a copy in the buffer of its socket.
 */
export class SyncTurns {
  readonly #after: (delayMs: number, work: () => void) => () => void;
  readonly #waiting = new Set<() => void>();
  #chars = 0;

  constructor(after: (delayMs: number, work: () => void) => () => void) {
    this.#after = after;
  }

  /**
   * Claims room for a message. null: it has to wait, and `resume` will be called. Otherwise it may be sent; call the returned
   * function when the client has read it, and at the latest when the connection closes.
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

  /** Forgets a waiting message whose connection has closed. */
  forget(resume: () => void): void {
    this.#waiting.delete(resume);
  }

  /** Resumes waiting messages. Those that still do not fit wait again, behind the others. */
  #resume(): void {
    for (const resume of [...this.#waiting]) {
      if (this.#chars >= SYNCS_UNREAD_MAX_CHARS) return;
      this.#waiting.delete(resume);
      resume();
    }
  }
}
