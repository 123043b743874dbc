import type { Clock } from "../../../../kernel/clock.ts";
import { SENT_AT_ONCE_MIN_BYTES } from "../../../sockets/limits.ts";
import type { Socket, SocketServer } from "../../../sockets/socket-server.ts";
import {
  FAN_OUT_BEHIND_BYTES,
  FAN_OUT_TURN_US,
  FAR_MEMBERS_AS_ONE,
  FAR_SHARD_MEMBERS_MAX,
  SEND_BYTES_PER_US,
  SEND_MEASURED_MIN,
  SEND_US_MAX,
  SEND_US_MIN,
  SHARD_MEMBERS_MAX,
  SHARD_TURN_MAX_BYTES,
  TOPIC_BEHIND_BYTES,
} from "../limits.ts";

/** A connection that a topic delivers to. */
export interface Listener {
  readonly socket: Socket;
  readonly isClosed: boolean;
  /** Number that changes with the listener's user: nothing is sent until the listener joins again, or leaves. [RT6] */
  readonly identity: number;
  /** Bytes sent to the listener that have not left the server. */
  readonly waitingBytes: number;
  /** Closes the socket when too much waits for it; true when it did. [SK15] */
  closeIfSlow(): boolean;
  closeAsSlow(): void;
  /** Measures the waiting bytes, so that they count towards the bound of all sockets together. [SK16] */
  countWaiting(): void;
}

const NOTHING: readonly string[] = [];

interface Message {
  text: string;
  /** Listener that is not sent the message. */
  except: Listener | null;
  /** Shards that have yet to be sent the message. */
  shardsLeft: number;
}

/** Members that share one native topic, with a common position in the messages. */
interface Shard {
  readonly name: string;
  /** Whether other processes hold the sockets of its members: a message to all of them is then one frame to each process. */
  readonly isFar: boolean;
  /** Members, with the identity of each when it joined. */
  readonly members: Map<Listener, number>;
  /** The number of the next message. */
  next: number;
}

/**
 * Listeners of the same messages. A message is serialised once and published natively, to a few members in each turn: sending it
 * to ten thousand sockets takes a hundred milliseconds. Each shard of members has its own position in the messages; a new member
 * starts behind the last one. [RT102]
 */
export class Topic {
  readonly #name: string;
  readonly #sockets: SocketServer;
  readonly #turns: FanOut;
  readonly #shardOf = new Map<Listener, Shard>();
  #shards: Shard[] = [];
  #shardCount = 0;
  /** Messages that some shard has yet to be sent. The first has the number `#first`. */
  #messages: Message[] = [];
  #first = 0;
  #waitingBytes = 0;
  /** Holds in force; with any, nothing is sent. */
  #holds = 0;
  /** Promise of `released`; null when nobody waits for it. */
  #released: PromiseWithResolvers<void> | null = null;
  /** Index of the shard whose turn was last. */
  #turn = 0;

  constructor(name: string, sockets: SocketServer, turns: FanOut) {
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

  /** Whether messages are published faster than they can be sent: publishers that can pause should. */
  get isBehind(): boolean {
    return this.#waitingBytes > TOPIC_BEHIND_BYTES || (this.#holds > 0 && this.#turns.isHoldingTooMuch);
  }

  /** Sends nothing until the returned function is called: the right of a member is being re-evaluated. [RT226] */
  hold(): () => void {
    if (this.#holds++ === 0) this.#moveCount();
    return () => {
      if (--this.#holds > 0) return;
      this.#moveCount();
      this.#released?.resolve();
      this.#released = null;
      this.#wake();
    };
  }

  /** Resolves when nothing holds the topic; null when nothing does. For texts sent to a member outside the topic's messages. */
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

  has(listener: Listener): boolean {
    return this.#shardOf.has(listener);
  }

  /** Starts the delivery to this listener. When called again, the listener gets its waiting messages as its current user. */
  join(listener: Listener): void {
    if (listener.isClosed) return;
    const { identity } = listener;
    const joined = this.#shardOf.get(listener);
    if (joined !== undefined) {
      if (joined.members.get(listener) === identity) return;
      joined.members.set(listener, identity);
      this.#wake();
      return;
    }
    const shard = this.#shardWithRoom(listener.socket.isFar === true);
    shard.members.set(listener, identity);
    this.#shardOf.set(listener, shard);
    listener.socket.subscribe(shard.name);
  }

  /**
   * Ends the delivery. Looks at messages for the last member of a shard only: thousands may leave in a turn in which as many
   * messages wait.
   */
  leave(listener: Listener): void {
    const shard = this.#shardOf.get(listener);
    if (shard === undefined) return;
    const hasHeld = shard.members.get(listener) !== listener.identity;
    this.#shardOf.delete(listener);
    shard.members.delete(listener);
    // A closed socket has left its native topics already.
    if (listener.socket.readyState === WebSocket.OPEN) listener.socket.unsubscribe(shard.name);
    if (shard.members.size > 0) {
      if (hasHeld) this.#wake();
      return;
    }
    this.#shards = this.#shards.filter((other) => other !== shard);
    for (const message of this.#messages.slice(shard.next - this.#first)) message.shardsLeft--;
    this.#forgetSent();
  }

  /** Returns the messages that a member has yet to be sent. */
  unsent(listener: Listener): readonly string[] {
    const shard = this.#shardOf.get(listener);
    if (shard === undefined) return NOTHING;
    const waiting = this.#messages.slice(shard.next - this.#first);
    return waiting.filter(({ except }) => except !== listener).map(({ text }) => text);
  }

  /** Publishes a message to all members except `except`. */
  publish(text: string, except: Listener | null = null): void {
    if (this.#shardOf.size === 0) return;
    this.#messages.push({ text, except, shardsLeft: this.#shards.length });
    this.#count(text.length);
    this.#turns.wake(this);
  }

  get hasWaiting(): boolean {
    return this.#holds === 0 && this.#messages.length > 0;
  }

  /**
   * Sends waiting messages to one shard, as many as fit into a turn. Returns its members, and the bytes sent to each; null when
   * nothing can be sent before the topic wakes.
   */
  sendSome(): { members: number; bytes: number } | null {
    const shard = this.#holds > 0 ? null : this.#nextShard();
    if (shard === null) return null;
    const { members } = shard;
    // A closed member leaves, even while the topic sends. The shard ends with its last member.
    for (const member of members.keys()) member.closeIfSlow();
    let bytes = 0;
    while (members.size > 0 && bytes < SHARD_TURN_MAX_BYTES) {
      const message = this.#messages[shard.next - this.#first];
      if (message === undefined) break;
      shard.next++;
      message.shardsLeft--;
      bytes += message.text.length;
      this.#publishTo(shard, message);
    }
    if (bytes >= SENT_AT_ONCE_MIN_BYTES) for (const member of members.keys()) member.countWaiting();
    this.#forgetSent();
    return { members: shard.isFar ? Math.ceil(members.size / FAR_MEMBERS_AS_ONE) : members.size, bytes };
  }

  #publishTo(shard: Shard, { text, except }: Message): void {
    // A closed socket can publish nothing.
    if (except === null || except.isClosed || !shard.members.has(except)) {
      this.#sockets.publish(shard.name, text);
      return;
    }
    except.socket.publish(shard.name, text);
    this.#sockets.publishElsewhere(except.socket, shard.name, text);
  }

  #wake(): void {
    if (this.hasWaiting) this.#turns.wake(this);
  }

  /** Returns the next shard in turn that has waiting messages and members who may receive them; null when there is none. */
  #nextShard(): Shard | null {
    const end = this.#first + this.#messages.length;
    for (let looked = 0; looked < this.#shards.length; looked++) {
      this.#turn = (this.#turn + 1) % this.#shards.length;
      const shard = this.#shards[this.#turn];
      if (shard !== undefined && shard.next < end && isCurrent(shard)) return shard;
    }
    return null;
  }

  #shardWithRoom(isFar: boolean): Shard {
    const next = this.#first + this.#messages.length;
    const membersMax = isFar ? FAR_SHARD_MEMBERS_MAX : SHARD_MEMBERS_MAX;
    for (const shard of this.#shards) {
      if (shard.isFar === isFar && shard.members.size < membersMax && shard.next === next) return shard;
    }
    const shard = { name: `${this.#name}/${this.#shardCount++}`, isFar, members: new Map<Listener, number>(), next };
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

function isCurrent({ members }: Shard): boolean {
  for (const [{ identity }, joined] of members) if (identity !== joined) return false;
  return true;
}

const MICROSECONDS_PER_MS = 1_000;

/**
 * Sends the waiting messages of topics, in turns of bounded cost. Bun hands small messages to the system after the turn, where a
 * clock here does not measure them: their cost is estimated from the number of sockets and bytes, and from how long the last turn
 * took until the loop came back. [RT102] [RT260]
 */
export class FanOut {
  readonly #clock: Clock;
  readonly #sockets: SocketServer;
  readonly #waiting = new Set<Topic>();
  #topicCount = 0;
  #waitingBytes = 0;
  #heldBytes = 0;
  /** Time spent in this turn of the event loop, in microseconds. */
  #spentUs = 0;
  #sendUs = SEND_US_MAX;
  #turn = { members: 0, startedAt: 0 };
  #isRunning = false;
  #cancelNext: (() => void) | null = null;

  constructor(clock: Clock, sockets: SocketServer) {
    this.#clock = clock;
    this.#sockets = sockets;
  }

  /** Creates a topic. Names are numbers, so that no channel can collide with the topic of another area. */
  topic(): Topic {
    return new Topic(`realtime/${this.#topicCount++}`, this.#sockets, this);
  }

  /** Whether so much waits in topics that publishers that can pause should. */
  get isBehind(): boolean {
    return this.#waitingBytes > FAN_OUT_BEHIND_BYTES;
  }

  /** Whether so much waits in held topics that no more is accepted. */
  get isHoldingTooMuch(): boolean {
    return this.#heldBytes > FAN_OUT_BEHIND_BYTES;
  }

  /** Queues a topic that has something to send. */
  wake(topic: Topic): void {
    this.#waiting.add(topic);
    if (this.#spentUs < FAN_OUT_TURN_US) this.#run();
  }

  /** Adds to the bytes waiting in topics that are not held; negative when they are sent or held. */
  count(bytes: number): void {
    this.#waitingBytes += bytes;
  }

  /** Adds to the bytes waiting in held topics; negative when they are released or dropped. */
  countHeld(bytes: number): void {
    this.#heldBytes += bytes;
  }

  stop(): void {
    this.#cancelNext?.();
  }

  #run(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (const topic of this.#waiting) {
      if (this.#spentUs >= FAN_OUT_TURN_US) break;
      const startedAt = this.#clock.now();
      this.#waiting.delete(topic);
      const sent = topic.sendSome();
      if (sent === null) continue;
      const { members, bytes } = sent;
      if (this.#turn.members === 0) this.#turn.startedAt = startedAt;
      this.#turn.members += members;
      const seenUs = (this.#clock.now() - startedAt) * MICROSECONDS_PER_MS;
      this.#spentUs += Math.max(members * (this.#sendUs + bytes / SEND_BYTES_PER_US), seenUs);
      // Queued again behind the others.
      if (topic.hasWaiting) this.#waiting.add(topic);
    }
    this.#isRunning = false;
    this.#cancelNext ??= this.#clock.after(0, () => this.#endTurn());
  }

  #endTurn(): void {
    this.#cancelNext = null;
    this.#spentUs = 0;
    const { members, startedAt } = this.#turn;
    // Other work of the loop counts too, so that the estimate is too high rather than too low.
    const tookUs = (this.#clock.now() - startedAt) * MICROSECONDS_PER_MS;
    if (members >= SEND_MEASURED_MIN) this.#sendUs = Math.min(SEND_US_MAX, Math.max(SEND_US_MIN, tookUs / members));
    this.#turn = { members: 0, startedAt: 0 };
    if (this.#waiting.size > 0) this.#run();
  }
}
