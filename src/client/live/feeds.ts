import type { JsonObject } from "../../kernel/json/json.ts";
import type { Runtime } from "../runtime.ts";
import type { ServerMessage, Socket } from "../socket/types.ts";
import { deniedError, type PlatformError, statusError } from "../transport/errors.ts";
import { createRetries, type Retries } from "./failures.ts";
import type { Plan } from "./plan.ts";

/** What a subscription says about one record: its state from now on. */
export type Change =
  | { readonly id: string; readonly kind: "put"; readonly record: JsonObject }
  /** It is gone, or no longer matches. */
  | { readonly id: string; readonly kind: "remove" }
  /** It has changed, and is too large for a message. */
  | { readonly id: string; readonly kind: "reread" };

/** `db_change`, and a member of `batch_changes`. */
interface ChangeMessage {
  changeType: "added" | "modified" | "removed";
  docId: string;
  data: JsonObject | null;
  seq: number;
}

function changeOf({ docId: id, changeType, data }: ChangeMessage): Change {
  if (changeType === "removed") return { id, kind: "remove" };
  return data === null ? { id, kind: "reread" } : { id, kind: "put", record: data };
}

/** The changes of a message, in order, and the number of the last one. */
function changesOf(message: ServerMessage): { changes: Change[]; seq: number } {
  // Of the server, which the types of its messages describe.
  const all = (message.type === "batch_changes" ? message["changes"] : [message]) as readonly ChangeMessage[];
  return { changes: all.map(changeOf), seq: all.at(-1)?.seq ?? 0 };
}

/** No answer to `subscribe` came: the server dropped it, as one over its rate. */
export const SUBSCRIBE_TIMEOUT_MS = 10_000;

/** What uses a subscription. */
export interface FeedMember {
  /** It begins, or goes on. `isWhole`: nothing was missed since the last change; else the list has to be loaded. */
  subscribed(isWhole: boolean): void;
  /** In the order of their commits. */
  changed(changes: readonly Change[]): void;
  /** The connection is lost. */
  lost(): void;
  /** Refused, or ended. `denied` is tried again. */
  refused(error: PlatformError): void;
}

interface Feed {
  readonly id: string;
  readonly subscription: Plan["subscription"];
  readonly members: Set<FeedMember>;
  readonly retries: Retries;
  /** The server's name for it, which its changes carry; null: it is not in force. */
  name: unknown;
  /** The number of the last change that is known, to go on from; null: none. */
  seq: unknown;
  /** Whether all that it was asked for since the connection was made goes on behind such a number. */
  isResumed: boolean;
  /** Why it was refused; null: it was not, or is asked for again. */
  error: PlatformError | null;
  cancelTimeout: () => void;
  /** The `flush` that has not been answered, and who waits for it; null: none. */
  flush: { readonly requestId: string; readonly waiting: readonly (() => void)[] } | null;
  /** Those who wait for the next one. */
  waiting: (() => void)[];
}

const NOT_DENIED = new Set<unknown>(["INVALID_FILTER", "INVALID_CHANNEL", "INVALID_MESSAGE", "TOO_MANY_SUBSCRIPTIONS"]);

/** The subscriptions of a client, one for all equal ones. */
export class Feeds {
  readonly #socket: Socket;
  readonly #runtime: Runtime;
  readonly #userId: () => string | null;
  readonly #byKey = new Map<string, Feed>();
  readonly #byId = new Map<unknown, Feed>();
  readonly #byName = new Map<unknown, Feed>();
  #release: (() => void) | null = null;
  #count = 0;

  constructor(socket: Socket, runtime: Runtime, userId: () => string | null) {
    this.#socket = socket;
    this.#runtime = runtime;
    this.#userId = userId;
    socket.on("subscribed", (message) => this.#subscribed(message));
    socket.on("db_change", (message) => this.#changed(message));
    socket.on("batch_changes", (message) => this.#changed(message));
    socket.on("error", (message) => this.#failed(message));
    socket.on("done", (message) => this.#flushed(message));
    socket.on("auth_refreshed", (message) => this.#ended(message));
    socket.onConnected(() => {
      for (const feed of this.#byKey.values()) this.#ask(feed);
    });
    socket.subscribe((status) => {
      if (status !== "connected") this.#lost();
    });
  }

  /** The function leaves it. */
  join(subscription: Plan["subscription"], member: FeedMember): () => void {
    const feed = this.#byKey.get(subscription.key) ?? this.#begin(subscription);
    feed.members.add(member);
    // What it missed is in the list that it loads now.
    if (feed.name !== null) member.subscribed(false);
    else if (feed.error !== null) member.refused(feed.error);
    return () => {
      if (feed.members.delete(member) && feed.members.size === 0) this.#end(feed);
    };
  }

  /**
   * Calls the listener when every change that was committed before this call has been given to the members, unless the subscription
   * is lost or loaded anew before, as its members hear.
   */
  flush({ key }: Plan["subscription"], listener: () => void): void {
    const feed = this.#byKey.get(key);
    // Those that are asked for in one turn share a message.
    if (feed !== undefined && feed.name !== null && feed.waiting.push(listener) === 1)
      queueMicrotask(() => this.#flush(feed));
  }

  #flush(feed: Feed): void {
    if (feed.flush !== null || feed.waiting.length === 0) return;
    const requestId = `flush ${++this.#count}`;
    feed.flush = { requestId, waiting: feed.waiting };
    feed.waiting = [];
    this.#socket.send({ type: "flush", id: feed.id, requestId });
  }

  /** `error`: the server does not know what was asked, as one of an earlier version, or has dropped it. */
  #flushed({ requestId, type }: ServerMessage): void {
    for (const feed of this.#byKey.values()) {
      if (feed.flush === null || feed.flush.requestId !== requestId) continue;
      const { waiting } = feed.flush;
      feed.flush = null;
      if (type === "error") for (const member of [...feed.members]) member.subscribed(false);
      else for (const listener of waiting) listener();
      this.#flush(feed);
    }
  }

  /** Another user: nothing of what was sent before counts. */
  forget(): void {
    for (const feed of this.#byKey.values()) {
      this.#unname(feed);
      feed.seq = null;
    }
  }

  #begin(subscription: Plan["subscription"]): Feed {
    const feed: Feed = {
      id: String(++this.#count),
      subscription,
      members: new Set(),
      retries: createRetries(this.#runtime),
      name: null,
      seq: null,
      isResumed: false,
      error: null,
      cancelTimeout: () => {},
      flush: null,
      waiting: [],
    };
    this.#byKey.set(subscription.key, feed);
    this.#byId.set(feed.id, feed);
    this.#release ??= this.#socket.hold();
    if (this.#socket.status === "connected") this.#ask(feed);
    return feed;
  }

  #end(feed: Feed): void {
    this.#unname(feed);
    feed.retries.stop();
    this.#byKey.delete(feed.subscription.key);
    this.#byId.delete(feed.id);
    this.#socket.send({ type: "unsubscribe", id: feed.id });
    if (this.#byKey.size > 0) return;
    this.#release?.();
    this.#release = null;
  }

  #unname(feed: Feed): void {
    feed.cancelTimeout();
    this.#byName.delete(feed.name);
    feed.name = null;
    feed.error = null;
    feed.flush = null;
    feed.waiting = [];
  }

  #ask(feed: Feed): void {
    this.#unname(feed);
    const { channel, filters } = feed.subscription;
    const since = feed.seq === null ? {} : { since: feed.seq };
    feed.isResumed = feed.seq !== null;
    this.#socket.send({ type: "subscribe", channel, id: feed.id, ...filters, ...since });
    feed.cancelTimeout = this.#runtime.after(SUBSCRIBE_TIMEOUT_MS, () => {
      // Should both be answered, the second answer drops what the first one had still to send: neither goes on from anything.
      feed.seq = null;
      if (this.#socket.status === "connected") this.#ask(feed);
    });
  }

  #subscribed(message: ServerMessage): void {
    const feed = this.#byId.get(message["id"]);
    if (feed === undefined) return;
    this.#unname(feed);
    feed.retries.succeeded();
    feed.name = message["feed"];
    this.#byName.set(feed.name, feed);
    const isWhole = feed.isResumed && message["resync"] !== true;
    feed.seq = message["seq"];
    for (const member of [...feed.members]) member.subscribed(isWhole);
  }

  #changed(message: ServerMessage): void {
    const feed = this.#byName.get(message["feed"]);
    if (feed === undefined) return;
    const { changes, seq } = changesOf(message);
    feed.seq = seq;
    for (const member of [...feed.members]) member.changed(changes);
  }

  #lost(): void {
    for (const feed of this.#byKey.values()) {
      this.#unname(feed);
      feed.retries.stop();
      for (const member of [...feed.members]) member.lost();
    }
  }

  #failed(answer: ServerMessage): void {
    const { id, code, message } = answer;
    const feed = this.#byId.get(id);
    if (answer["requestId"] !== undefined) this.#flushed(answer);
    // After RATE_LIMITED it is asked for again when its time is over.
    else if (feed !== undefined && code !== "RATE_LIMITED") this.#refuse(feed, code, String(message));
  }

  #ended({ revokedIds }: ServerMessage): void {
    for (const id of Array.isArray(revokedIds) ? revokedIds : []) {
      const feed = this.#byId.get(id);
      if (feed !== undefined) this.#refuse(feed, "SUBSCRIBE_DENIED");
    }
  }

  #refuse(feed: Feed, code: unknown, message = ""): void {
    this.#unname(feed);
    feed.seq = null;
    const isDenied = !NOT_DENIED.has(code);
    const error = isDenied ? deniedError(this.#userId()) : statusError(400, message);
    feed.error = error;
    for (const member of [...feed.members]) member.refused(error);
    // No message says that a right has come back.
    if (isDenied || code === "TOO_MANY_SUBSCRIPTIONS") feed.retries.later(() => this.#ask(feed));
  }
}
