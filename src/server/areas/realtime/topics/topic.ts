import type { Clock } from "../../../../kernel/clock.ts";
import { SENT_AT_ONCE_MIN_BYTES } from "../../../sockets/limits.ts";
import type { Socket, SocketServer } from "../../../sockets/socket-server.ts";
import {
  FAN_OUT_BEHIND_BYTES,
  FAN_OUT_TURN_US,
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
  /** Changes with its user: it is sent nothing until it joins again, or leaves. [RT6] */
  readonly identity: number;
  /** Bytes that have been sent to it and have not left the server. */
  readonly waitingBytes: number;
  /** Closes the socket when too much waits for it already; true when it did. [SK15] */
  closeIfSlow(): boolean;
  closeAsSlow(): void;
  /** Looks at what waits, so that it counts towards what may wait for all sockets together. [SK16] */
  countWaiting(): void;
}

const NOTHING: readonly string[] = [];

interface Message {
  text: string;
  /** A listener that is not sent the message. */
  except: Listener | null;
  /** Shards that have not been sent it. */
  shardsLeft: number;
}

/** Members that share one native topic, and the number of their next message. */
interface Shard {
  readonly name: string;
  /** The members, with the identity of each when it joined. */
  readonly members: Map<Listener, number>;
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
  readonly #turns: FanOut;
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
  /** The index of the shard whose turn it was last. */
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

  /** Whether messages are published faster than they can be sent: publishers that can should stop for now. */
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
      this.#wake();
    };
  }

  /** Resolves when nothing holds the topic; null: nothing does. For what is sent to a member beside its messages. */
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

  /** Delivers to this listener from now on. Called again, it gets what waits for it as its present user. */
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
    const shard = this.#shardWithRoom();
    shard.members.set(listener, identity);
    this.#shardOf.set(listener, shard);
    listener.socket.subscribe(shard.name);
  }

  /** Ends the delivery. It looks at messages for the last member of a shard only: thousands may leave in a turn in which as many wait. */
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

  /** Returns the messages that a member has not been sent. */
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

  /**
   * Sends to one shard what waits for it, as much as fits into a turn. Returns its members, and the bytes sent to each; null:
   * nothing can be sent before the topic wakes.
   */
  sendSome(): { members: number; bytes: number } | null {
    const shard = this.#holds > 0 ? null : this.#nextShard();
    if (shard === null) return null;
    const { members } = shard;
    // A member that is closed leaves, also while something is sent. The shard ends with its last member.
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
    return { members: members.size, bytes };
  }

  #publishTo(shard: Shard, { text, except }: Message): void {
    // A closed socket publishes nothing any more.
    if (except === null || except.isClosed || !shard.members.has(except)) this.#sockets.publish(shard.name, text);
    else except.socket.publish(shard.name, text);
  }

  #wake(): void {
    if (this.hasWaiting) this.#turns.wake(this);
  }

  /** Returns the next shard in turn that messages wait for, and whose members may have them. */
  #nextShard(): Shard | null {
    const end = this.#first + this.#messages.length;
    for (let looked = 0; looked < this.#shards.length; looked++) {
      this.#turn = (this.#turn + 1) % this.#shards.length;
      const shard = this.#shards[this.#turn];
      if (shard !== undefined && shard.next < end && isCurrent(shard)) return shard;
    }
    return null;
  }

  #shardWithRoom(): Shard {
    const next = this.#first + this.#messages.length;
    for (const shard of this.#shards) {
      if (shard.members.size < SHARD_MEMBERS_MAX && shard.next === next) return shard;
    }
    const shard = { name: `${this.#name}/${this.#shardCount++}`, members: new Map<Listener, number>(), next };
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
 * Sends what waits in topics, in turns of bounded cost. Bun hands small messages to the system after the turn, where a clock
 * here does not measure them: their cost is estimated from the number of sockets and bytes, and from how long the last turn
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

  /** Whether so much waits in topics that publishers that can wait should. */
  get isBehind(): boolean {
    return this.#waitingBytes > FAN_OUT_BEHIND_BYTES;
  }

  /** Whether so much waits in topics that are held that no more is taken. */
  get isHoldingTooMuch(): boolean {
    return this.#heldBytes > FAN_OUT_BEHIND_BYTES;
  }

  /** Takes a topic that has something to send. */
  wake(topic: Topic): void {
    this.#waiting.add(topic);
    if (this.#spentUs < FAN_OUT_TURN_US) this.#run();
  }

  /** Counts bytes of messages that wait in topics: positive when published, negative when sent. */
  count(bytes: number): void {
    this.#waitingBytes += bytes;
  }

  /** Counts bytes of messages that wait in topics that are held. */
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
      // Added again behind the others.
      if (topic.hasWaiting) this.#waiting.add(topic);
    }
    this.#isRunning = false;
    this.#cancelNext ??= this.#clock.after(0, () => this.#endTurn());
  }

  #endTurn(): void {
    this.#cancelNext = null;
    this.#spentUs = 0;
    const { members, startedAt } = this.#turn;
    // Whatever else the loop did meanwhile counts too, so that the estimate is too high rather than too low.
    const tookUs = (this.#clock.now() - startedAt) * MICROSECONDS_PER_MS;
    if (members >= SEND_MEASURED_MIN) this.#sendUs = Math.min(SEND_US_MAX, Math.max(SEND_US_MIN, tookUs / members));
    this.#turn = { members: 0, startedAt: 0 };
    if (this.#waiting.size > 0) this.#run();
  }
}
