import { isPromise } from "../../../../kernel/maybe-promise.ts";
import { AUDIENCE_WAITING_MAX, AUDIENCE_WAITING_MAX_BYTES } from "../limits.ts";
import type { Topic } from "../topics/topic.ts";
import type { Entry, TableLog } from "./change-log.ts";
import { encodeChanges } from "./encoding.ts";
import { type ChangeType, ChangeTypes, type View } from "./visibility.ts";

/** The subscribers of one channel that see every change alike: it is evaluated and serialised once for all. */
export interface Audience {
  readonly key: string;
  /** Of its subscriptions. */
  readonly channel: string;
  /** Its name in the changes; null: they carry none. */
  readonly feed: string | null;
  readonly topic: Topic;
  readonly view: View;
  /** Its subscriptions, those that are still catching up included. */
  holders: number;
  /** The number of the last change that it has delivered. Behind the log's while a rule is awaited or changes wait. */
  readonly position: number;
  /** Queues the changes of one request, to be delivered after `ready`. */
  enqueue(entries: readonly Entry[], ready?: Promise<void> | null): void;
  /** Delivers the changes of the oldest request, or goes on with them until `isOver`; true when more can be delivered. */
  deliverNext(isOver: () => boolean): boolean;
  /** Resolves when it has delivered, or dropped, further changes. */
  advanced(): Promise<void>;
  /** Serialises the changes of one request. */
  encode(entries: readonly Entry[], types: readonly (ChangeType | null)[]): string[];
}

export interface AudienceChannel {
  name: string;
  docId: string | null;
}

export function createAudience(deps: {
  key: string;
  feed: string | null;
  channel: AudienceChannel;
  view: View;
  log: TableLog;
  topic: Topic;
  batchThreshold: number;
  /** It was waiting for a rule, and can deliver again. */
  onReady(audience: Audience): void;
  /** Too many changes were waiting and have been dropped. */
  onOverrun(audience: Audience): void;
}): Audience {
  const { log, topic, view, feed } = deps;
  const channel = { name: deps.channel.name, table: log.address.table, feed };
  const waiting = createQueue();
  let isAwaiting = false;
  let delivered = log.head;
  /** null: no caller waits for it. */
  let advance: PromiseWithResolvers<void> | null = null;

  const announceAdvance = (): void => {
    advance?.resolve();
    advance = null;
  };
  const encode: Audience["encode"] = (entries, types) => encodeChanges(channel, entries, types, deps.batchThreshold);
  const deliver = (entries: readonly Entry[], types: readonly (ChangeType | null)[]): void => {
    for (const message of encode(entries, types)) topic.publish(message);
    delivered = entries.at(-1)?.seq ?? delivered;
    announceAdvance();
  };
  const awaitReady = (next: { ready: Promise<void> | null }, ready: Promise<void>): void => {
    isAwaiting = true;
    void ready.then(() => {
      next.ready = null;
      isAwaiting = false;
      deps.onReady(audience);
    });
  };
  const audience: Audience = {
    key: deps.key,
    channel: channel.name,
    feed,
    topic,
    view,
    holders: 0,
    get position() {
      return waiting.isEmpty && !isAwaiting ? log.head : delivered;
    },
    enqueue(entries, ready = null) {
      if (waiting.isEmpty && !isAwaiting) delivered = log.before(entries[0]?.seq ?? log.head);
      waiting.add({ entries, ready, types: null });
      if (!waiting.isOverfull) return;
      waiting.clear();
      deps.onOverrun(audience);
      announceAdvance();
    },
    deliverNext(isOver) {
      if (isAwaiting) return false;
      const { next } = waiting;
      if (next === null) return false;
      if (next.ready !== null) {
        awaitReady(next, next.ready);
        return false;
      }
      next.types ??= new ChangeTypes(view, next.entries);
      try {
        if (!next.types.advance(isOver)) return true;
      } catch (cause) {
        waiting.shift();
        throw cause;
      }
      waiting.shift();
      const types = next.types.all;
      if (!isPromise(types)) {
        deliver(next.entries, types);
        return !waiting.isEmpty;
      }
      isAwaiting = true;
      void types.then(
        (settled) => {
          deliver(next.entries, settled);
          isAwaiting = false;
          if (!waiting.isEmpty) deps.onReady(audience);
        },
        () => {
          isAwaiting = false;
          deps.onOverrun(audience);
          announceAdvance();
        },
      );
      return false;
    },
    advanced() {
      advance ??= Promise.withResolvers<void>();
      return advance.promise;
    },
    encode,
  };
  return audience;
}

/** One request's changes. */
interface Waiting {
  readonly entries: readonly Entry[];
  ready: Promise<void> | null;
  /** null: their evaluation has not begun. */
  types: ChangeTypes | null;
}

/** Requests whose changes wait, counted by changes and bytes. */
function createQueue() {
  let waiting: Waiting[] = [];
  let count = 0;
  let bytes = 0;
  const tally = ({ entries }: Waiting, sign: 1 | -1): void => {
    count += sign * entries.length;
    for (const entry of entries) bytes += sign * entry.bytes;
  };
  return {
    get next(): Waiting | null {
      return waiting[0] ?? null;
    },
    get isEmpty() {
      return waiting.length === 0;
    },
    /** The changes of a single request are never too many. */
    get isOverfull() {
      return waiting.length > 1 && (count > AUDIENCE_WAITING_MAX || bytes > AUDIENCE_WAITING_MAX_BYTES);
    },
    add(more: Waiting): void {
      waiting.push(more);
      tally(more, 1);
    },
    shift(): void {
      const first = waiting.shift();
      if (first !== undefined) tally(first, -1);
    },
    clear(): void {
      waiting = [];
      count = 0;
      bytes = 0;
    },
  };
}
