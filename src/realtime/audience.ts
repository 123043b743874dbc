import { isPromise } from "../kernel/maybe-promise.ts";
import type { Entry, TableLog } from "./change-log.ts";
import { encodeChanges } from "./encoding.ts";
import { AUDIENCE_WAITING_MAX } from "./limits.ts";
import type { Topic } from "./topic.ts";
import { type ChangeType, changeTypesFor, type View } from "./visibility.ts";

/** Subscribers of one channel to whom every change is the same: one evaluation and one message serve them all. */
export interface Audience {
  readonly key: string;
  readonly topic: Topic;
  readonly view: View;
  /** Subscriptions that count on it, those that are still catching up included. */
  holders: number;
  /** The number of the last change that it has delivered; behind the log's only while a rule is awaited. */
  readonly position: number;
  /** The changes of one request wait to be delivered, not before `ready` where there is something to wait for. */
  enqueue(entries: readonly Entry[], ready?: Promise<void> | null): void;
  /** Delivers the oldest request's changes; true when more are ready. */
  deliverNext(): boolean;
  /** Resolves once it has delivered, or dropped, something more. */
  advanced(): Promise<void>;
  /** The messages of one request's changes. */
  encode(entries: readonly Entry[], types: readonly (ChangeType | null)[]): string[];
}

export interface AudienceChannel {
  name: string;
  docId: string | null;
}

export function createAudience(deps: {
  key: string;
  channel: AudienceChannel;
  view: View;
  log: TableLog;
  topic: Topic;
  batchThreshold: number;
  /** It was waiting for a rule, and can go on. */
  onReady(audience: Audience): void;
  /** It has fallen so far behind that its changes were dropped. */
  onOverrun(audience: Audience): void;
}): Audience {
  const { log, topic, view } = deps;
  const channel = { name: deps.channel.name, table: log.address.table };
  let waiting: { entries: readonly Entry[]; ready: Promise<void> | null }[] = [];
  let waitingCount = 0;
  let isAwaiting = false;
  let delivered = log.head;
  /** null: nobody waits for it to go on. */
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
    topic,
    view,
    holders: 0,
    get position() {
      return waiting.length === 0 && !isAwaiting ? log.head : delivered;
    },
    enqueue(entries, ready = null) {
      if (waiting.length === 0 && !isAwaiting) delivered = (entries[0]?.seq ?? log.head) - 1;
      waitingCount += entries.length;
      waiting.push({ entries, ready });
      // One request's changes are taken however many they are.
      if (waiting.length === 1 || waitingCount <= AUDIENCE_WAITING_MAX) return;
      waiting = [];
      waitingCount = 0;
      deps.onOverrun(audience);
      announceAdvance();
    },
    deliverNext() {
      if (isAwaiting) return false;
      const [next] = waiting;
      if (next === undefined) return false;
      if (next.ready !== null) {
        awaitReady(next, next.ready);
        return false;
      }
      const { entries } = next;
      waiting.shift();
      waitingCount -= entries.length;
      const types = changeTypesFor(view, entries);
      if (!isPromise(types)) {
        deliver(entries, types);
        return waiting.length > 0;
      }
      isAwaiting = true;
      void types.then(
        (settled) => {
          deliver(entries, settled);
          isAwaiting = false;
          if (waiting.length > 0) deps.onReady(audience);
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
