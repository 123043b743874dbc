import { SENT_AT_ONCE_MIN_BYTES } from "../../sockets/limits.ts";
import type { Socket, SocketServer } from "../../sockets/server/socket-server.ts";
import { SHARD_MEMBERS_MAX, SHARD_TURN_MAX_BYTES, TOPIC_BEHIND_BYTES } from "../limits.ts";

/** Somebody a topic delivers to. */
export interface Listener {
  readonly socket: Socket;
  readonly isClosed: boolean;
  /** Bytes that have been sent to it and not yet left. */
  readonly waitingBytes: number;
  /** Closes the socket when too much waits for it already; true when it did. [RT11] */
  closeIfSlow(): boolean;
  closeAsSlow(): void;
  /** What waits for it now counts for what may wait for all sockets together. [RT101] */
  countWaiting(): void;
}

/** What sends in turns: `FanOut`. */
export interface Turns {
  /** The topic has something to send. */
  wake(topic: Topic): void;
  /** Bytes of messages that wait in topics: grows by what is published, shrinks by what has gone out. */
  count(bytes: number): void;
}

interface Message {
  text: string;
  /** Does not hear it. */
  except: Listener | null;
  /** Shards that have not got it. */
  shardsLeft: number;
}

/** Members that one native topic serves, and how far they are. */
interface Shard {
  readonly name: string;
  readonly members: Set<Listener>;
  /** The number of the next message. */
  next: number;
}

/**
 * Those who get the same messages. A message is serialised once and published natively, to some members at a time: a
 * message to ten thousand sockets takes a hundred milliseconds, in which others get their turns. Each shard of members has
 * its own place in the messages, and who joins begins behind the last one.
 */
export class Topic {
  readonly #name: string;
  readonly #sockets: SocketServer;
  readonly #turns: Turns;
  readonly #shardOf = new Map<Listener, Shard>();
  #shards: Shard[] = [];
  #shardCount = 0;
  /** Messages that some shard has not got; the first one has the number `#first`. */
  #messages: Message[] = [];
  #first = 0;
  #waitingBytes = 0;
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

  /** Messages come faster than they can be sent: who can, should publish no more for now. */
  get isBehind(): boolean {
    return this.#waitingBytes > TOPIC_BEHIND_BYTES;
  }

  join(listener: Listener): void {
    if (listener.isClosed || this.#shardOf.has(listener)) return;
    const shard = this.#shardWithRoom();
    shard.members.add(listener);
    this.#shardOf.set(listener, shard);
    listener.socket.subscribe(shard.name);
  }

  leave(listener: Listener): void {
    const shard = this.#shardOf.get(listener);
    if (shard === undefined) return;
    this.#shardOf.delete(listener);
    shard.members.delete(listener);
    // A closed socket has left natively already.
    if (listener.socket.readyState === WebSocket.OPEN) listener.socket.unsubscribe(shard.name);
    if (shard.members.size > 0) return;
    this.#shards = this.#shards.filter((other) => other !== shard);
    for (const message of this.#messages.slice(shard.next - this.#first)) message.shardsLeft--;
    this.#forgetSent();
  }

  /** `except` does not hear it. */
  publish(text: string, except: Listener | null = null): void {
    if (this.#shardOf.size === 0) return;
    this.#messages.push({ text, except, shardsLeft: this.#shards.length });
    this.#count(text.length);
    this.#turns.wake(this);
  }

  get hasWaiting(): boolean {
    return this.#messages.length > 0;
  }

  /** Sends to one shard what it has not got, as much as fits a turn; gives to how many, and how many bytes to each. */
  sendSome(): { members: number; bytes: number } {
    const shard = this.#nextShard();
    if (shard === null) return { members: 0, bytes: 0 };
    const { members } = shard;
    // A member that is closed leaves, now or while something is sent; the last one takes the shard with it.
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

  /** The next one in turn that has not got everything. */
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

  /** Drops the messages that every shard has got. */
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
    this.#turns.count(bytes);
  }
}
