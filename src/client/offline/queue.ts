import { inTurn } from "../auth/lease.ts";
import type { ClientContext } from "../context.ts";
import type { Retries } from "../live/failures.ts";
import type { Live } from "../live/live.ts";
import { type BegunWrite, sendWrite, type TableWrite } from "../tables/writes.ts";
import { type ErrorFacts, isPassing, localError, PlatformError } from "../transport/errors.ts";
import type { OfflineStorage, WaitingWrite } from "./storage.ts";

/** How a write has ended in the tab that sent it. */
interface Outcome {
  readonly type: "ended";
  readonly serial: number;
  readonly answer: unknown;
  readonly error: ErrorFacts | null;
}

export type News = Outcome | { readonly type: "added" };

/** The other pages of this browser that have the same storage. */
interface Tabs {
  tell(news: News): void;
  /** Runs `work` while no other tab runs its own. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  close(): void;
}

interface TabsParts extends Pick<ClientContext, "runtime" | "store"> {
  name: string;
  hear(news: News): void;
}

export function joinTabs({ runtime, store, name, hear }: TabsParts): Tabs {
  const key = `platform.offline.${name}`;
  const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(key);
  if (channel !== null) channel.onmessage = ({ data }) => hear(data);
  return {
    tell: (news) => channel?.postMessage(news),
    inTurn: (work) => inTurn({ store, runtime, key, work }),
    close: () => channel?.close(),
  };
}

/** The server keeps the answer of a write for 24 h: until then it can be sent again and is done once. */
export const UNKNOWN_AFTER_MS = 23 * 60 * 60 * 1_000;

/** Writes that wait for a connection. A further one is refused. */
export const WAITING_WRITES_MAX = 1_000;

/** The characters of the JSON of one write that can wait. */
const WRITE_LENGTH_MAX = 1_000_000;

interface Parts {
  context: ClientContext;
  live: Live;
  retries: Retries;
  storage: OfflineStorage;
  tabs: Tabs;
  refused(write: TableWrite, error: PlatformError): void;
}

/** Writes in order, each kept until the server has answered it. */
export class WriteQueue {
  readonly #parts: Parts;
  /** How writes end here: for callers that wait for them, or for what shows them after a reload. */
  readonly #endings = new Map<number, BegunWrite & { readonly write: TableWrite }>();
  /** Writes that are being stored, which their callers show. */
  readonly #adding = new Set<string>();
  #isSending = false;
  #hasMore = false;
  /** The number of the last write that has ended, here or in another tab. */
  #endedUpTo = 0;
  /** Of one user's writes. What is under way when it is aborted ends, and changes nothing. Stays so at the end. */
  #present = new AbortController();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Shows and sends what waits since an earlier page, or in another tab. */
  async resume(): Promise<void> {
    const { signal } = this.#present;
    const before = this.#endedUpTo;
    for (const [serial, { write }] of await this.#ownWaiting()) {
      // Writes end in order: one that has ended while they were read is not shown again.
      const isOver = serial <= this.#endedUpTo && this.#endedUpTo > before;
      const isKnown = this.#endings.has(serial) || this.#adding.has(keyOf(write));
      if (!signal.aborted && !isOver && !isKnown)
        this.#endings.set(serial, { ...this.#parts.live.begin(write), write });
    }
    this.send();
  }

  /** Keeps it once `ready`. Resolves with the server's answer, whenever it comes. */
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
    // The disk is full, or the browser has closed the database, as when its data are cleared: it goes as without one.
    if (serial === null) return sendWrite(context.transport, write);
    tabs.tell({ type: "added" });
    return new Promise((confirm, undo) => {
      this.#endings.set(serial, { confirm, undo, write });
      this.send();
    });
  }

  /** One of them has been answered, here or in another tab. */
  ended({ serial, answer, error }: Outcome): void {
    const ending = this.#endings.get(serial);
    this.#endings.delete(serial);
    this.#endedUpTo = Math.max(this.#endedUpTo, serial);
    if (error === null) ending?.confirm(answer);
    else ending?.undo(new PlatformError(error));
  }

  /** Sends what waits; the same when it is called while something is sent. */
  send(): void {
    this.#hasMore = true;
    if (this.#isSending || this.#present.signal.aborted) return;
    this.#isSending = true;
    void this.#sendAll();
  }

  /** The user of the writes is another one, or nobody: they are undone, and reported where this page has shown them. */
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
      // One tab at a time, and each write by itself, so that no tab keeps the others waiting.
      while (!signal.aborted && (await this.#parts.tabs.inTurn(() => this.#sendFirst(signal))));
      this.#parts.retries.succeeded();
    } catch {
      if (!signal.aborted) this.#parts.retries.later(() => this.send());
    }
    this.#isSending = false;
    // Asked for meanwhile, perhaps by the next user while a request of the one before was under way.
    if (this.#hasMore) this.send();
  }

  /** What of the oldest `count`, by default of all, waits for the user of now. A tab that has not heard of a sign-out yet may have stored more. */
  async #ownWaiting(count?: number): Promise<[serial: number, write: WaitingWrite][]> {
    const { context, storage } = this.#parts;
    return (await storage.waiting(count)).filter(([, { userId }]) => userId === context.transport.userId());
  }

  /** false: nothing waits. Errors: what passes. */
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

  /** Errors: what passes, after which the write still waits. */
  async #attempt(serial: number, waiting: WaitingWrite, signal: AbortSignal): Promise<[unknown, PlatformError | null]> {
    const { context, storage } = this.#parts;
    const { write, sentAt } = waiting;
    const { request } = write;
    const now = context.runtime.now();
    if (sentAt === null) await storage.put(serial, { ...waiting, sentAt: now });
    else if (request.idempotencyKey !== null && now - sentAt > UNKNOWN_AFTER_MS) {
      const message = "The answer was lost, and the write is too old to be sent again";
      return [null, localError("unknown", message)];
    }
    try {
      return [await sendWrite(context.transport, write, signal), null];
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      // It may have been done by a try whose answer was lost: browsers try again by themselves too.
      if (request.method === "DELETE" && error.status === 404) return [undefined, null];
      if (isPassing(error)) throw error;
      return [null, error];
    }
  }
}

const signedOut = (): PlatformError => localError("unauthenticated", "The user has signed out");

/** Different for two writes, but for two equal deletions. */
const keyOf = ({ request }: TableWrite): string => JSON.stringify(request);

/** Its message is no member that a spread copies. */
const factsOf = (error: PlatformError) => ({ ...error, message: error.message });
