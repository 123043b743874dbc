import {
  ARRIVAL_PAUSE_MS,
  ARRIVAL_PAUSES_MAX,
  ARRIVALS_READING_MAX_BYTES,
  ARRIVALS_TURN_MAX_BYTES,
  REPLAY_WAITING_MAX_BYTES,
  SYNC_AT_ONCE_MEMBERS_MAX,
} from "../limits.ts";
import type { LeaveReason } from "../messages.ts";
import type { Listener, Topic } from "./topic.ts";

export interface PresenceListener extends Listener {
  sendText(text: string): void;
  /** Resolves when the waiting bytes have been sent, or the connection has ended. */
  drained(): Promise<void>;
}

/** Presence entry. Immutable: a change replaces the object. */
interface Entry {
  userId: string;
  connectionId: string;
  /** JSON of the entry in `presence_sync`, without its opening brace. */
  text: string;
}

/** Entries and listeners of one channel. */
export class PresenceChannel {
  /** Channel name as JSON. */
  readonly #name: string;
  readonly #topic: Topic;
  readonly #entries = new Map<string, Entry>();
  /** Listeners still reading a long `presence_sync`, each with its attempt. */
  readonly #catchingUp = new Map<PresenceListener, { readonly identity: number }>();
  readonly #arrivals: Arrivals<PresenceListener>;

  constructor(name: string, topic: Topic, pause: (delayMs: number) => Promise<void>) {
    this.#name = JSON.stringify(name);
    this.#topic = topic;
    this.#arrivals = new Arrivals({
      sync: () => this.#sync(),
      send: (listener, text) => this.#greet(listener, text),
      readingCount: () => this.#catchingUp.size,
      released: () => topic.released(),
      pause,
    });
  }

  /** Counts the entries. */
  get size(): number {
    return this.#entries.size;
  }

  get isUnused(): boolean {
    const isHeard = this.#topic.size > 0 || this.#catchingUp.size > 0 || !this.#arrivals.isEmpty;
    return this.#entries.size === 0 && !isHeard;
  }

  /** Whether too much waits to be sent. */
  get isBehind(): boolean {
    return this.#topic.isBehind;
  }

  has(connectionId: string): boolean {
    return this.#entries.has(connectionId);
  }

  /** Adds or replaces an entry. `state` is JSON. */
  set(userId: string, connectionId: string, state: string): void {
    const text = `"userId":${JSON.stringify(userId)},"connectionId":"${connectionId}","state":${state}}`;
    const type = this.#entries.has(connectionId) ? "presence_update" : "presence_join";
    const entry = { userId, connectionId, text };
    this.#entries.set(connectionId, entry);
    this.#topic.publish(this.#arrival(type, entry));
  }

  delete(connectionId: string, reason: LeaveReason): void {
    const entry = this.#entries.get(connectionId);
    if (entry === undefined) return;
    this.#entries.delete(connectionId);
    this.#topic.publish(this.#departure(entry, reason));
  }

  /** Holds changes, and the long syncs of waiting listeners, until the returned function is called. */
  hold(): () => void {
    return this.#topic.hold();
  }

  /** Sends the `presence_sync`, then the changes after it. */
  listen(listener: PresenceListener): void {
    if (this.size <= SYNC_AT_ONCE_MEMBERS_MAX && this.#arrivals.isEmpty) this.#greet(listener, this.#sync());
    else this.#arrivals.add(listener);
  }

  /**
   * Continues with a listener whose user has changed and who may listen as well. A `presence_sync` that the listener has yet to
   * receive is sent anew.
   */
  renew(listener: PresenceListener): void {
    if (this.#topic.has(listener)) this.#topic.join(listener);
    else {
      this.unlisten(listener);
      this.listen(listener);
    }
  }

  unlisten(listener: PresenceListener): void {
    this.#arrivals.delete(listener);
    this.#catchingUp.delete(listener);
    this.#topic.leave(listener);
  }

  #greet(listener: PresenceListener, text: string): void {
    listener.sendText(text);
    this.#catchUp(listener).catch(() => listener.closeAsSlow());
  }

  /** Holds back changes until a long sync has been read: the first one would otherwise close the connection as too slow. */
  async #catchUp(listener: PresenceListener): Promise<void> {
    const { identity } = listener;
    const attempt = { identity };
    this.#catchingUp.set(listener, attempt);
    const isOver = (): boolean => this.#catchingUp.get(listener) !== attempt || listener.identity !== identity;
    while (listener.waitingBytes > REPLAY_WAITING_MAX_BYTES) {
      const known = new Map(this.#entries);
      await listener.drained();
      for (let held = this.#topic.released(); held !== null; held = this.#topic.released()) await held;
      if (isOver()) return;
      const messages = this.#differences(known);
      const length = messages.reduce((sum, message) => sum + message.length, 0);
      for (const message of length > REPLAY_WAITING_MAX_BYTES ? [this.#sync()] : messages) listener.sendText(message);
    }
    if (isOver()) return;
    this.#catchingUp.delete(listener);
    this.#topic.join(listener);
  }

  /** Returns the messages that lead from the known entries to the current ones. */
  #differences(known: ReadonlyMap<string, Entry>): string[] {
    const messages: string[] = [];
    for (const [id, entry] of known) if (!this.#entries.has(id)) messages.push(this.#departure(entry, "disconnect"));
    for (const [id, entry] of this.#entries) {
      const before = known.get(id);
      if (before === undefined) messages.push(this.#arrival("presence_join", entry));
      else if (before !== entry) messages.push(this.#arrival("presence_update", entry));
    }
    return messages;
  }

  #sync(): string {
    const users = Array.from(this.#entries.values(), ({ text }) => `{${text}`).join(",");
    return `{"type":"presence_sync","channel":${this.#name},"users":[${users}]}`;
  }

  #arrival(type: "presence_join" | "presence_update", { text }: Entry): string {
    return `{"type":"${type}","channel":${this.#name},${text}`;
  }

  #departure({ userId, connectionId }: Entry, reason: LeaveReason): string {
    const rest = JSON.stringify({ userId, connectionId, reason }).slice(1);
    return `{"type":"presence_leave","channel":${this.#name},${rest}`;
  }
}

interface Reader {
  readonly isClosed: boolean;
  readonly identity: number;
  closeAsSlow(): void;
}

interface ArrivalsDeps<Arriving> {
  /** Returns the current `presence_sync`. */
  sync(): string;
  /** Sends the sync to a listener, and changes after it. */
  send(listener: Arriving, sync: string): void;
  /** Counts listeners that have not read their sync yet. */
  readingCount(): number;
  /** Resolves when the channel may send; null when it may already. */
  released(): Promise<void> | null;
  pause(delayMs: number): Promise<void>;
}

/**
 * Sends long syncs in turns: listeners that arrive together get one text, a few listeners at a time, and the next ones after
 * these have read it. Ten thousand clients that reconnect would otherwise each need a list of ten thousand in memory. [RT103]
 */
export class Arrivals<Arriving extends Reader> {
  readonly #deps: ArrivalsDeps<Arriving>;
  /** Waiting listeners, with the identity of each when it was added. */
  readonly #waiting = new Map<Arriving, number>();
  #isRunning = false;

  constructor(deps: ArrivalsDeps<Arriving>) {
    this.#deps = deps;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Queues a listener. If its identity changes before the text is sent, it is skipped. */
  add(listener: Arriving): void {
    this.#waiting.set(listener, listener.identity);
    if (this.#isRunning) return;
    this.#run().catch(() => {
      for (const one of this.#waiting.keys()) one.closeAsSlow();
      this.#waiting.clear();
    });
  }

  delete(listener: Arriving): void {
    this.#waiting.delete(listener);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#waiting.size > 0) await this.#turn();
    } finally {
      this.#isRunning = false;
    }
  }

  async #turn(): Promise<void> {
    const { sync, send, readingCount, released, pause } = this.#deps;
    await pause(0);
    if (this.#waiting.size === 0) return;
    let text = sync();
    // A client that never reads must not hold up the others for long.
    for (let pauses = 0; readingCount() * text.length > ARRIVALS_READING_MAX_BYTES; pauses++) {
      if (pauses === ARRIVAL_PAUSES_MAX) break;
      await pause(ARRIVAL_PAUSE_MS);
      text = sync();
    }
    for (let held = released(); held !== null; held = released()) {
      await held;
      text = sync();
    }
    let left = Math.max(1, Math.floor(ARRIVALS_TURN_MAX_BYTES / text.length));
    for (const [listener, identity] of this.#waiting) {
      this.#waiting.delete(listener);
      if (!listener.isClosed && listener.identity === identity) send(listener, text);
      if (--left === 0) break;
    }
  }
}
