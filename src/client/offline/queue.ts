import type { ClientContext } from "../context.ts";
import type { Retries } from "../live/failures.ts";
import type { Live } from "../live/live.ts";
import { type BegunWrite, sendWrite, type TableWrite } from "../tables/writes.ts";
import { type ErrorFacts, isPassing, localError, PlatformError } from "../transport/errors.ts";
import type { OfflineStorage, WaitingWrite } from "./storage.ts";

/** Outcome of a write, told by the tab that sent it. */
interface Outcome {
  readonly type: "ended";
  readonly serial: number;
  readonly answer: unknown;
  readonly error: ErrorFacts | null;
}

export type News = Outcome | { readonly type: "added" };

/** Other pages of this browser with the same storage. */
interface Tabs {
  tell(news: News): void;
  /** Runs `work` exclusively among the tabs. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  close(): void;
}

interface TabsParts extends Pick<ClientContext, "inTurn"> {
  name: string;
  hear(news: News): void;
}

export function joinTabs({ inTurn, name, hear }: TabsParts): Tabs {
  const key = `platform.offline.${name}`;
  const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(key);
  if (channel !== null) channel.onmessage = ({ data }) => hear(data);
  return {
    tell: (news) => channel?.postMessage(news),
    inTurn: (work) => inTurn({ key, work }),
    close: () => channel?.close(),
  };
}

/** The server keeps idempotent responses for 24 h. Until then a write can be retried safely. */
export const UNKNOWN_AFTER_MS = 23 * 60 * 60 * 1_000;

/** Bound of the waiting writes. Further ones are refused. */
export const WAITING_WRITES_MAX = 1_000;

/** Limit of the JSON of one waiting write, in characters. */
const WRITE_LENGTH_MAX = 1_000_000;

interface Parts {
  context: ClientContext;
  live: Live;
  retries: Retries;
  storage: OfflineStorage;
  tabs: Tabs;
  refused(write: TableWrite, error: PlatformError): void;
}

/** Queue of writes in order, each kept until the server has responded. */
export class WriteQueue {
  readonly #parts: Parts;
  /** Settles writes in this tab: for callers that wait for them, or for overlays restored after a reload. */
  readonly #endings = new Map<number, BegunWrite & { readonly write: TableWrite }>();
  /** Writes being stored, which their callers already show. */
  readonly #adding = new Set<string>();
  #isSending = false;
  #hasMore = false;
  /** Serial number of the last write that has ended, here or in another tab. */
  #endedUpTo = 0;
  /** Aborted when the user changes. Work in flight then ends without effect. After `stop` it stays aborted. */
  #present = new AbortController();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Restores and sends writes left by an earlier page, or by another tab. */
  async resume(): Promise<void> {
    const { signal } = this.#present;
    const before = this.#endedUpTo;
    for (const [serial, { write }] of await this.#ownWaiting()) {
      // Writes end in order. One that ended while they were read is not shown again.
      const isOver = serial <= this.#endedUpTo && this.#endedUpTo > before;
      const isKnown = this.#endings.has(serial) || this.#adding.has(keyOf(write));
      if (!signal.aborted && !isOver && !isKnown)
        this.#endings.set(serial, { ...this.#parts.live.begin(write), write });
    }
    this.send();
  }

  /** Stores a write once `ready`. Resolves with the server's response, whenever it arrives. */
  async add(write: TableWrite, userId: string, ready: Promise<void>): Promise<unknown> {
    const { context, storage, tabs } = this.#parts;
    if (
      this.#endings.size + this.#adding.size >= WAITING_WRITES_MAX ||
      JSON.stringify(write).length > WRITE_LENGTH_MAX
    ) {
      const message = `At most ${WAITING_WRITES_MAX} writes of ${WRITE_LENGTH_MAX} characters can wait`;
      throw localError("too_large", message);
    }
    const key = keyOf(write);
    this.#adding.add(key);
    const serial = await ready
      .then(() => storage.add({ write, userId, sentAt: null }))
      .catch(() => null)
      .finally(() => this.#adding.delete(key));
    if (context.transport.userId() !== userId) {
      if (serial !== null) await storage.remove(serial);
      throw signedOut();
    }
    // The disk is full, or the browser has closed the database, as when its data are cleared: the write is sent directly.
    if (serial === null) return sendWrite(context.transport, write);
    tabs.tell({ type: "added" });
    return new Promise((confirm, undo) => {
      this.#endings.set(serial, { confirm, undo, write });
      this.send();
    });
  }

  /** Handles the response to a write, received here or by another tab. */
  ended({ serial, answer, error }: Outcome): void {
    const ending = this.#endings.get(serial);
    this.#endings.delete(serial);
    this.#endedUpTo = Math.max(this.#endedUpTo, serial);
    if (error === null) ending?.confirm(answer);
    else ending?.undo(new PlatformError(error));
  }

  /** Sends the waiting writes. A call during sending makes it continue afterwards. */
  send(): void {
    this.#hasMore = true;
    if (this.#isSending || this.#present.signal.aborted) return;
    this.#isSending = true;
    void this.#sendAll();
  }

  /** Undoes the writes of a user who signed out or was replaced, and reports those that this page has shown. */
  forget(): void {
    this.stop();
    this.#present = new AbortController();
    const lost = [...this.#endings.values()];
    this.#endings.clear();
    for (const { undo, write } of lost) {
      undo(signedOut());
      this.#parts.refused(write, signedOut());
    }
  }

  stop(): void {
    this.#present.abort();
    this.#parts.retries.stop();
  }

  async #sendAll(): Promise<void> {
    const { signal } = this.#present;
    this.#hasMore = false;
    try {
      // One tab sends at a time, one write per turn, so that no tab blocks the others.
      while (!signal.aborted && (await this.#parts.tabs.inTurn(() => this.#sendFirst(signal))));
      this.#parts.retries.succeeded();
    } catch {
      if (!signal.aborted) this.#parts.retries.later(() => this.send());
    }
    this.#isSending = false;
    // Requested meanwhile, perhaps by the next user during a request of the previous one.
    if (this.#hasMore) this.send();
  }

  /**
   * Returns the current user's writes among the oldest `count` (default: all). A tab unaware of a sign-out may have stored
   * another user's.
   */
  async #ownWaiting(count?: number): Promise<[serial: number, write: WaitingWrite][]> {
    const { context, storage } = this.#parts;
    return (await storage.waiting(count)).filter(([, { userId }]) => userId === context.transport.userId());
  }

  /** Sends the oldest write. Returns false if nothing waits. Errors: temporary failures. */
  async #sendFirst(signal: AbortSignal): Promise<boolean> {
    const { storage, tabs } = this.#parts;
    const [first = (await this.#ownWaiting())[0]] = await this.#ownWaiting(1);
    if (first === undefined || signal.aborted) return false;
    const [serial, { write }] = first;

    const [answer, error] = await this.#attempt(...first, signal);
    if (signal.aborted) return false;
    await storage.remove(serial);
    const outcome = { type: "ended" as const, serial, answer, error: error === null ? null : factsOf(error) };
    tabs.tell(outcome);
    this.ended(outcome);
    if (error !== null) this.#parts.refused(write, error);
    return true;
  }

  /** Attempts one write. Errors: temporary failures, after which the write still waits. */
  async #attempt(serial: number, waiting: WaitingWrite, signal: AbortSignal): Promise<[unknown, PlatformError | null]> {
    const { context, storage } = this.#parts;
    const { write, sentAt } = waiting;
    const { request } = write;
    const now = context.runtime.now();
    if (sentAt === null) await storage.put(serial, { ...waiting, sentAt: now });
    else if (request.idempotencyKey !== null && now - sentAt > UNKNOWN_AFTER_MS) {
      const message = "The answer was lost";
      return [null, localError("unknown", message)];
    }
    try {
      return [await sendWrite(context.transport, write, signal), null];
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      // An attempt whose response was lost may have deleted it: browsers also retry on their own.
      if (request.method === "DELETE" && error.status === 404) return [undefined, null];
      if (isPassing(error)) throw error;
      return [null, error];
    }
  }
}

const signedOut = (): PlatformError => localError("unauthenticated", "The user has signed out");

/** Returns a key of a write. Equal deletions share one, other writes never do. */
const keyOf = ({ request }: TableWrite): string => JSON.stringify(request);

/** Copies the error's members. A spread leaves out `message`. */
const factsOf = (error: PlatformError) => ({ ...error, message: error.message });
