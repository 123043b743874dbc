import { SENT_AT_ONCE_MIN_BYTES } from "../../sockets/limits.ts";
import type { Socket, SocketServer } from "../../sockets/server/socket-server.ts";
import { SHARD_MEMBERS_MAX, SHARD_TURN_MAX_BYTES, TOPIC_BEHIND_BYTES } from "../limits.ts";

/** A connection that a topic delivers to. */
export interface Listener {
  readonly socket: Socket;
  readonly isClosed: boolean;
  /** Bytes that have been sent to it and have not left the server. */
  readonly waitingBytes: number;
  /** Closes the socket when too much waits for it already; true when it did. [SK15] */
  closeIfSlow(): boolean;
  closeAsSlow(): void;
  /** Looks at what waits, so that it counts towards what may wait for all sockets together. [SK16] */
  countWaiting(): void;
}

/** Sends in turns: `FanOut`. */
export interface Turns {
  /** The topic has something to send. */
  wake(topic: Topic): void;
  /** Counts bytes of messages that wait in topics: positive when published, negative when sent. */
  count(bytes: number): void;
  /** The same for messages of topics that are held. */
  countHeld(bytes: number): void;
  /** So much waits in topics that are held that no more is taken. */
  readonly isHoldingTooMuch: boolean;
}

const NOTHING: readonly string[] = [];

interface Message {
  text: string;
  /** Is not sent the message. */
  except: Listener | null;
  /** Shards that have not been sent it. */
  shardsLeft: number;
}

/** Members that share one native topic, and the number of their next message. */
interface Shard {
  readonly name: string;
  readonly members: Set<Listener>;
  /** The number of the next message. */
  next: number;
}

/**
 * Listeners that get the same messages. A message is serialised once and published natively, to a few members in each turn:
 * to send it to ten thousand sockets takes a hundred milliseconds. Each shard of members has its own position in the
 * messages; a new member starts behind the last one. [RT102]
 */
export class Topic {
  readonly #name: string;
  readonly #sockets: SocketServer;
  readonly #turns: Turns;
  readonly #shardOf = new Map<Listener, Shard>();
  #shards: Shard[] = [];
  #shardCount = 0;
  /** Messages that some shard has not been sent. The first has the number `#first`. */
  #messages: Message[] = [];
  #first = 0;
  #waitingBytes = 0;
  /** Nothing is sent while there are any. */
  #holds = 0;
  /** null: nobody waits for the end of the holds. */
  #released: PromiseWithResolvers<void> | null = null;
  /** The shard whose turn is next. */
  #turn = 0;

  constructor(name: string, sockets: SocketServer, turns: Turns) {
    this.#name = name;
    this.#sockets = sockets;
    this.#turns = turns;
  }

  get size(): number {
    return this.#shardOf.size;
  }

  get members(): Iterable<Listener> {
    return this.#shardOf.keys();
  }

  /** Messages are published faster than they can be sent: publishers that can should stop for now. */
  get isBehind(): boolean {
    return this.#waitingBytes > TOPIC_BEHIND_BYTES || (this.#holds > 0 && this.#turns.isHoldingTooMuch);
  }

  /** Sends nothing until the function returned is called: the right of a member is being asked again. [RT226] */
  hold(): () => void {
    if (this.#holds++ === 0) this.#moveCount();
    return () => {
      if (--this.#holds > 0) return;
      this.#moveCount();
      this.#released?.resolve();
      this.#released = null;
      if (this.hasWaiting) this.#turns.wake(this);
    };
  }

  /** For what is sent to a member beside its messages. Resolves when nothing holds the topic; null: nothing does. */
  released(): Promise<void> | null {
    if (this.#holds === 0) return null;
    this.#released ??= Promise.withResolvers<void>();
    return this.#released.promise;
  }

  #moveCount(): void {
    const bytes = this.#holds > 0 ? this.#waitingBytes : -this.#waitingBytes;
    this.#turns.count(-bytes);
    this.#turns.countHeld(bytes);
  }

  join(listener: Listener): void {
    if (listener.isClosed || this.#shardOf.has(listener)) return;
    const shard = this.#shardWithRoom();
    shard.members.add(listener);
    this.#shardOf.set(listener, shard);
    listener.socket.subscribe(shard.name);
  }

  /** Looks at messages for the last member of a shard only: thousands may leave in a turn in which as many messages wait. */
  leave(listener: Listener): void {
    const shard = this.#shardOf.get(listener);
    if (shard === undefined) return;
    this.#shardOf.delete(listener);
    shard.members.delete(listener);
    // A closed socket has left its native topics already.
    if (listener.socket.readyState === WebSocket.OPEN) listener.socket.unsubscribe(shard.name);
    if (shard.members.size > 0) return;
    this.#shards = this.#shards.filter((other) => other !== shard);
    for (const message of this.#messages.slice(shard.next - this.#first)) message.shardsLeft--;
    this.#forgetSent();
  }

  /** The messages that a member has not been sent. */
  unsent(listener: Listener): readonly string[] {
    const shard = this.#shardOf.get(listener);
    if (shard === undefined) return NOTHING;
    const waiting = this.#messages.slice(shard.next - this.#first);
    return waiting.filter(({ except }) => except !== listener).map(({ text }) => text);
  }

  /** `except` is not sent the message. */
  publish(text: string, except: Listener | null = null): void {
    if (this.#shardOf.size === 0) return;
    this.#messages.push({ text, except, shardsLeft: this.#shards.length });
    this.#count(text.length);
    this.#turns.wake(this);
  }

  get hasWaiting(): boolean {
    return this.#holds === 0 && this.#messages.length > 0;
  }

  /** Sends to one shard what waits for it, as much as fits into a turn. Returns its members, and the bytes sent to each. */
  sendSome(): { members: number; bytes: number } {
    const shard = this.#holds > 0 ? null : this.#nextShard();
    if (shard === null) return { members: 0, bytes: 0 };
    const { members } = shard;
    // A member that is closed leaves, also while something is sent. The shard ends with its last member.
    for (const member of members) member.closeIfSlow();
    let bytes = 0;
    while (members.size > 0 && bytes < SHARD_TURN_MAX_BYTES) {
      const message = this.#messages[shard.next - this.#first];
      if (message === undefined) break;
      shard.next++;
      message.shardsLeft--;
      bytes += message.text.length;
      this.#publishTo(shard, message);
    }
    if (bytes >= SENT_AT_ONCE_MIN_BYTES) for (const member of members) member.countWaiting();
    this.#forgetSent();
    return { members: members.size, bytes };
  }

  #publishTo(shard: Shard, { text, except }: Message): void {
    // A closed socket publishes nothing any more.
    if (except === null || except.isClosed || !shard.members.has(except)) this.#sockets.publish(shard.name, text);
    else except.socket.publish(shard.name, text);
  }

  /** The next shard in turn that messages wait for. */
  #nextShard(): Shard | null {
    const end = this.#first + this.#messages.length;
    for (let looked = 0; looked < this.#shards.length; looked++) {
      this.#turn = (this.#turn + 1) % this.#shards.length;
      const shard = this.#shards[this.#turn];
      if (shard !== undefined && shard.next < end) return shard;
    }
    return null;
  }

  #shardWithRoom(): Shard {
    const next = this.#first + this.#messages.length;
    for (const shard of this.#shards) {
      if (shard.members.size < SHARD_MEMBERS_MAX && shard.next === next) return shard;
    }
    const shard = { name: `${this.#name}/${this.#shardCount++}`, members: new Set<Listener>(), next };
    this.#shards.push(shard);
    return shard;
  }

  /** Drops the messages that every shard has been sent. */
  #forgetSent(): void {
    let sent = 0;
    let bytes = 0;
    for (const { text, shardsLeft } of this.#messages) {
      if (shardsLeft > 0) break;
      sent++;
      bytes += text.length;
    }
    if (sent === 0) return;
    this.#messages.splice(0, sent);
    this.#first += sent;
    this.#count(-bytes);
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    if (this.#holds > 0) this.#turns.countHeld(bytes);
    else this.#turns.count(bytes);
  }
}
