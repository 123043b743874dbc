import { isPromise } from "../../../../kernel/maybe-promise.ts";
import { AUDIENCE_WAITING_MAX, AUDIENCE_WAITING_MAX_BYTES } from "../limits.ts";
import type { Topic } from "../topics/topic.ts";
import type { Entry, TableLog } from "./change-log.ts";
import { type ChangeType, ChangeTypes, encodeChanges, type Shown } from "./visibility.ts";

export interface AudienceChannel {
  name: string;
  docId: string | null;
}

interface AudienceParts {
  key: string;
  feed: string | null;
  channel: AudienceChannel;
  view: Shown;
  log: TableLog;
  topic: Topic;
  batchThreshold: number;
  /** Called when an awaited rule has answered, and the audience can deliver again. */
  onReady(audience: Audience): void;
}

/** Queued changes of one request. */
interface Waiting {
  readonly entries: readonly Entry[];
  ready: Promise<void> | null;
  /** Evaluation of the changes; null before it has begun. */
  types: ChangeTypes | null;
}

/** The subscribers of one channel that see every change alike: a change is evaluated and serialised once for all. */
export class Audience {
  readonly key: string;
  /** Channel of the subscriptions. */
  readonly channel: string;
  /** Feed name in the changes; null when they carry none. */
  readonly feed: string | null;
  readonly topic: Topic;
  readonly view: Shown;
  /** Counts the subscriptions, including those still catching up. */
  holders = 0;
  readonly #parts: AudienceParts;
  readonly #waiting = new Requests();
  #isAwaiting = false;
  #delivered: number;
  /** Promise of `advanced`; null when nobody waits for it. */
  #advance: PromiseWithResolvers<void> | null = null;

  constructor(parts: AudienceParts) {
    this.#parts = parts;
    this.key = parts.key;
    this.channel = parts.channel.name;
    this.feed = parts.feed;
    this.topic = parts.topic;
    this.view = parts.view;
    this.#delivered = parts.log.head;
  }

  /** The `seq` of the last delivered change. Behind the log's head while a rule is awaited or changes wait. */
  get position(): number {
    return this.#waiting.isEmpty && !this.#isAwaiting ? this.#parts.log.head : this.#delivered;
  }

  /** Queues the changes of one request, to be delivered after `ready`. */
  enqueue(entries: readonly Entry[], ready: Promise<void> | null = null): void {
    if (this.#waiting.isEmpty && !this.#isAwaiting)
      this.#delivered = this.#parts.log.before(entries[0]?.seq ?? this.#parts.log.head);
    this.#waiting.add({ entries, ready, types: null });
    if (!this.#waiting.isOverfull) return;
    this.#waiting.clear();
    this.drop();
    this.#announceAdvance();
  }

  /** Delivers the changes of the oldest request, or continues with them until `isOver`; true when more can be delivered. */
  deliverNext(isOver: () => boolean): boolean {
    const { next } = this.#waiting;
    if (this.#isAwaiting || next === null) return false;
    if (next.ready !== null) {
      this.#awaitReady(next, next.ready);
      return false;
    }
    next.types ??= new ChangeTypes(this.view, next.entries);
    try {
      if (!next.types.advance(isOver)) return true;
    } catch (cause) {
      this.#waiting.shift();
      throw cause;
    }
    this.#waiting.shift();
    const types = next.types.all;
    if (!isPromise(types)) {
      this.#deliver(next.entries, types);
      return !this.#waiting.isEmpty;
    }
    this.#isAwaiting = true;
    void types.then(
      (settled) => {
        this.#deliver(next.entries, settled);
        this.#isAwaiting = false;
        if (!this.#waiting.isEmpty) this.#parts.onReady(this);
      },
      () => {
        this.#isAwaiting = false;
        this.drop();
        this.#announceAdvance();
      },
    );
    return false;
  }

  /** Resolves when further changes have been delivered or dropped. */
  advanced(): Promise<void> {
    this.#advance ??= Promise.withResolvers<void>();
    return this.#advance.promise;
  }

  /** Serialises the changes of one request. */
  encode(entries: readonly Entry[], types: readonly (ChangeType | null)[]): string[] {
    const { log, batchThreshold } = this.#parts;
    const channel = { name: this.channel, table: log.address.table, feed: this.feed };
    return encodeChanges(channel, entries, types, batchThreshold);
  }

  /** Gives up the changes that wait, which are of an earlier content: their subscribers have to begin anew. */
  restart(): void {
    if (this.#waiting.isEmpty && !this.#isAwaiting) return;
    this.#waiting.clear();
    this.drop();
    this.#announceAdvance();
  }

  /** Closes the connections of the subscribers, who have missed changes: they have to reconnect with `since`. */
  drop(): void {
    for (const member of [...this.topic.members]) member.closeAsSlow();
  }

  #deliver(entries: readonly Entry[], types: readonly (ChangeType | null)[]): void {
    for (const message of this.encode(entries, types)) this.topic.publish(message);
    this.#delivered = entries.at(-1)?.seq ?? this.#delivered;
    this.#announceAdvance();
  }

  #awaitReady(next: Waiting, ready: Promise<void>): void {
    this.#isAwaiting = true;
    void ready.then(() => {
      next.ready = null;
      this.#isAwaiting = false;
      this.#parts.onReady(this);
    });
  }

  #announceAdvance(): void {
    this.#advance?.resolve();
    this.#advance = null;
  }
}

/** Queue of requests whose changes wait, bounded by changes and bytes. */
class Requests {
  #waiting: Waiting[] = [];
  #count = 0;
  #bytes = 0;

  get next(): Waiting | null {
    return this.#waiting[0] ?? null;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Whether the queue exceeds its bounds. The changes of a single request never do. */
  get isOverfull(): boolean {
    const isOver = this.#count > AUDIENCE_WAITING_MAX || this.#bytes > AUDIENCE_WAITING_MAX_BYTES;
    return isOver && this.#waiting.length > 1;
  }

  add(more: Waiting): void {
    this.#waiting.push(more);
    this.#tally(more, 1);
  }

  shift(): void {
    const first = this.#waiting.shift();
    if (first !== undefined) this.#tally(first, -1);
  }

  clear(): void {
    this.#waiting = [];
    this.#count = 0;
    this.#bytes = 0;
  }

  #tally({ entries }: Waiting, sign: 1 | -1): void {
    this.#count += sign * entries.length;
    for (const entry of entries) this.#bytes += sign * entry.bytes;
  }
}
