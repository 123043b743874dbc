import type { JsonObject } from "../../kernel/json/json.ts";
import type { Runtime } from "../runtime.ts";
import type { ServerMessage, Socket } from "../socket/types.ts";
import { deniedError, type PlatformError, statusError } from "../transport/errors.ts";
import { createRetries, type Retries } from "./failures.ts";
import type { Plan } from "./plan.ts";

/** Change of one record in a subscription: its state from now on. */
export type Change =
  | { readonly id: string; readonly kind: "put"; readonly record: JsonObject }
  /** The record was deleted, or no longer matches. */
  | { readonly id: string; readonly kind: "remove" }
  /** The record has changed, and is too large for a message. */
  | { readonly id: string; readonly kind: "reread" };

/** `db_change` message, or a member of `batch_changes`. */
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

/** Returns the changes of a message in order, and the sequence number of the last one. */
function changesOf(message: ServerMessage): { changes: Change[]; seq: number } {
  // The server's message types describe the fields.
  const all = (message.type === "batch_changes" ? message["changes"] : [message]) as readonly ChangeMessage[];
  return { changes: all.map(changeOf), seq: all.at(-1)?.seq ?? 0 };
}

/** Timeout of `subscribe`: without a reply, the server has dropped it because of its rate limit. */
export const SUBSCRIBE_TIMEOUT_MS = 10_000;

/** User of a subscription. */
export interface FeedMember {
  /** Called when the subscription starts or resumes. `isWhole`: no change was missed; otherwise the list must be reloaded. */
  subscribed(isWhole: boolean): void;
  /** Called with changes in commit order. */
  changed(changes: readonly Change[]): void;
  /** Called when the connection is lost. */
  lost(): void;
  /** Called when the subscription is refused or revoked. `denied` is retried. */
  refused(error: PlatformError): void;
}

interface Feed {
  readonly id: string;
  readonly subscription: Plan["subscription"];
  readonly members: Set<FeedMember>;
  readonly retries: Retries;
  /** Name that the server gave the feed, carried by its changes; null: not subscribed. */
  name: unknown;
  /** Sequence number of the last known change, from which to resume; null: none. */
  seq: unknown;
  /** Whether the latest `subscribe` resumes from a sequence number. */
  isResumed: boolean;
  /** Reason of the refusal; null: not refused, or requested again. */
  error: PlatformError | null;
  cancelTimeout: () => void;
  /** Unanswered `flush` and its listeners; null: none. */
  flush: { readonly requestId: string; readonly waiting: readonly (() => void)[] } | null;
  /** Listeners of the next `flush`. */
  waiting: (() => void)[];
}

const NOT_DENIED = new Set<unknown>(["INVALID_FILTER", "INVALID_CHANNEL", "INVALID_MESSAGE", "TOO_MANY_SUBSCRIPTIONS"]);

/** Subscriptions of a client, shared by equal ones. */
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

  /** Joins a subscription, starting it if needed. Returns a function that leaves it. */
  join(subscription: Plan["subscription"], member: FeedMember): () => void {
    const feed = this.#byKey.get(subscription.key) ?? this.#begin(subscription);
    feed.members.add(member);
    // The new member loads its list now, which has everything before.
    if (feed.name !== null) member.subscribed(false);
    else if (feed.error !== null) member.refused(feed.error);
    return () => {
      if (feed.members.delete(member) && feed.members.size === 0) this.#end(feed);
    };
  }

  /**
   * Calls the listener when every change committed before this call has been delivered to the members. If the subscription is
   * lost or reloaded first, its members are told instead.
   */
  flush({ key }: Plan["subscription"], listener: () => void): void {
    const feed = this.#byKey.get(key);
    // Flushes requested in the same turn share a message.
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

  /** Handles the reply to a `flush`. `error`: the server is an earlier version that does not know `flush`, or has dropped it. */
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

  /** Forgets the state of all feeds when the user changes. */
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
      // If both requests are answered, the second answer discards pending changes of the first, so neither may resume.
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
    // After RATE_LIMITED, the timeout of the request retries it.
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
    // No message reports that a right was restored.
    if (isDenied || code === "TOO_MANY_SUBSCRIPTIONS") feed.retries.later(() => this.#ask(feed));
  }
}
