import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { ReadAccess, TableDoor } from "../../../access/table-door.ts";
import type { ChannelMeter } from "../meter.ts";
import { type Channel, parseChannel } from "../channel.ts";
import { denied, type Failure, failure, unknownChannel } from "../failures.ts";
import { SUBSCRIPTIONS_PER_CONNECTION_MAX } from "../limits.ts";
import {
  keyOf,
  type Naming,
  principalOf,
  type RealtimeConnection,
  type Subscription,
  type TableChannel,
  type TableSubscription,
  type TopicSubscription,
} from "./model.ts";
import type { Presence } from "../presence/presence.ts";
import { Revoked, userIdOf } from "../revoked.ts";
import type { Broadcasts } from "../topics/broadcasts.ts";
import type { TopicRights } from "./topic-rights.ts";
import type { Asked, Askers, OnAnswer } from "./askers.ts";
import { mergeFilters, parseFilters, type SentFilters } from "./filters.ts";
import type { TableSubscriptions } from "./table-subscription.ts";

/** How a message names a subscription. */
interface SentName {
  channel?: string | null | undefined;
  id?: string | null | undefined;
}

interface FilterUpdate extends SentFilters, SentName {}

interface SubscribeRequest extends SentFilters, SentName {
  channel: string;
  /** The `seq` of the last event that the client has; null or absent: the subscription starts with the next change. */
  since?: number | null;
}

/** Subscriptions to channels of every kind. Functions with a `Failure` return null when they have succeeded. */
export interface Subscribing {
  subscribe(connection: RealtimeConnection, request: SubscribeRequest): MaybePromise<Failure | null>;
  updateFilters(connection: RealtimeConnection, update: FilterUpdate): Failure | null;
  /** Sends all changes that were committed before. */
  flush(connection: RealtimeConnection, named: SentName): MaybePromise<Failure | null>;
  /** The subscription with this id, or the one to this channel without an id; null: there is none. */
  find(connection: RealtimeConnection, named: SentName): Subscription | null;
  end(connection: RealtimeConnection, subscription: Subscription): void;
  /** Applies what the rule returned when it was evaluated again; null: it denies. */
  readonly follow: OnAnswer;
  /** Ends what a presence or broadcast rule denies now, and tells the client. */
  revoke(connection: RealtimeConnection, channel: Pick<TopicSubscription, "kind" | "name">): void;
  /** Asks the rule for who the user is now. false: it denies, and the subscription has ended by that. */
  review(connection: RealtimeConnection, subscription: Subscription): MaybePromise<boolean>;
}

interface SubscribingDeps {
  tables: TableDoor;
  topicRights: TopicRights;
  askers: Pick<Askers, "ask" | "settle">;
  subscriptions: TableSubscriptions;
  presence: Presence;
  broadcasts: Broadcasts;
  meter: Pick<ChannelMeter, "begun" | "ended">;
  /** Of connections that have closed. */
  followUps: Pick<Scheduler, "soon">;
}

export function createSubscribing(deps: SubscribingDeps): Subscribing {
  const { tables, topicRights, subscriptions, presence, broadcasts, meter } = deps;

  const end = (connection: RealtimeConnection, subscription: Subscription): void => {
    const own = connection.state.subscriptions;
    const key = keyOf(subscription);
    if (own.get(key) !== subscription) return;
    own.delete(key);
    meter.ended(subscription);
    const { kind, name } = subscription;
    if (kind === "table") subscriptions.end(connection, subscription);
    // Unless another subscription of this connection listens to the same channel.
    else if (!isListening(connection, subscription)) {
      if (kind === "presence") presence.unlisten(name, connection);
      else broadcasts.unlisten(name, connection);
      topicRights.follow(connection, subscription);
    }
  };
  const endEarlier = (connection: RealtimeConnection, named: Naming): void => {
    const earlier = connection.state.subscriptions.get(keyOf(named));
    if (earlier !== undefined) end(connection, earlier);
  };
  /** Ends an earlier subscription too: the right to it is gone. */
  const refuse = (connection: RealtimeConnection, named: Naming): Failure => {
    endEarlier(connection, named);
    return denied("SUBSCRIBE_DENIED");
  };
  const subscribeToTable = createTableSubscribing(deps, { refuse, endEarlier });
  const subscribeToTopic = createTopicSubscribing(deps, { refuse, endEarlier });

  const find: Subscribing["find"] = ({ state }, { channel, id }) =>
    state.subscriptions.get(keyOf({ name: channel ?? "", id: id ?? null })) ?? null;

  return {
    find,
    end,
    subscribe(connection, request) {
      const channel = parseChannel(request.channel, tables);
      if (channel === null) return unknownChannel(request.channel);
      const { id = null } = request;
      const own = connection.state.subscriptions;
      if (!own.has(keyOf({ name: channel.name, id })) && own.size >= SUBSCRIPTIONS_PER_CONNECTION_MAX) {
        const message = `A connection has at most ${SUBSCRIPTIONS_PER_CONNECTION_MAX} subscriptions`;
        return failure("TOO_MANY_SUBSCRIPTIONS", message);
      }
      if (channel.kind === "table") return subscribeToTable(connection, { ...request, channel, id });
      return subscribeToTopic(connection, { ...request, channel, id });
    },
    review: createReview(deps, end),
    follow(connection, subscription, access, about) {
      const { principal } = connection;
      if (subscription.isEnded || principal === null) return;
      if (access !== null) return subscriptions.adopt(connection, subscription, access, about);
      end(connection, subscription);
      const revoked = new Revoked();
      revoked.add(subscription);
      connection.send(revoked.message(userIdOf(principal)));
    },
    revoke(connection, { kind, name }) {
      const revoked = new Revoked();
      revoked.add({ name, id: null });
      for (const subscription of [...connection.state.subscriptions.values()]) {
        if (subscription.kind !== kind || subscription.name !== name) continue;
        end(connection, subscription);
        revoked.add(subscription);
      }
      const { principal, state } = connection;
      if (kind === "presence" && state.tracked !== null) presence.untrack(state.tracked, name, "denied");
      if (principal !== null) connection.send(revoked.message(userIdOf(principal)));
    },
    updateFilters: createFilterUpdates(deps, find),
    flush(connection, named) {
      const found = findTable(find, connection, { ...named, refusal: notOfTable() });
      return "code" in found ? found : subscriptions.flush(connection, found).then(() => null);
    },
  };
}

function createReview(
  { askers, subscriptions, topicRights, presence, broadcasts }: SubscribingDeps,
  end: Subscribing["end"],
): Subscribing["review"] {
  const reviewTable = (connection: RealtimeConnection, subscription: TableSubscription): MaybePromise<boolean> => {
    const answered = (asked: Asked | null): boolean => {
      const { isEnded } = subscription;
      if (isEnded) asked?.right.end();
      else if (asked === null) end(connection, subscription);
      else subscriptions.renew(connection, subscription, asked);
      // Where data changed while the rule was awaited.
      void askers.settle(subscription);
      return isEnded || asked !== null;
    };
    const asked = askFor(askers, connection, subscription.channel, subscription.access);
    if (!isPromise(asked)) return answered(asked);
    subscriptions.pause(connection, subscription);
    return asked.then(answered);
  };
  const reviewTopic = (connection: RealtimeConnection, subscription: TopicSubscription): MaybePromise<boolean> => {
    const { kind, name } = subscription;
    const answered = (isAllowed: boolean): boolean => {
      // It may have ended while the rule was awaited.
      const isEnded = connection.state.subscriptions.get(keyOf(subscription)) !== subscription;
      if (!isEnded && !isAllowed) end(connection, subscription);
      if (!isEnded && isAllowed) {
        subscription.identity = connection.identity;
        if (kind === "presence") presence.renew(name, connection);
        else broadcasts.listen(name, connection);
      }
      topicRights.follow(connection, subscription);
      return isEnded || isAllowed;
    };
    const asked = topicRights.ask(connection, subscription);
    if (!isPromise(asked)) return answered(asked);
    return asked.then(answered).finally(topicRights.hold(subscription));
  };
  return (connection, subscription) =>
    subscription.kind === "table" ? reviewTable(connection, subscription) : reviewTopic(connection, subscription);
}

/** How a subscription begins where an earlier one of the same name may be. */
interface Replacing {
  refuse(connection: RealtimeConnection, named: Naming): Failure;
  endEarlier(connection: RealtimeConnection, named: Naming): void;
}

/** Asks the rule of a table until the answer is about who the connection's user is by then. [RT6] */
function askFor(
  askers: Pick<Askers, "ask">,
  connection: RealtimeConnection,
  channel: TableChannel,
  before: ReadAccess | null = null,
): MaybePromise<Asked | null> {
  const principal = principalOf(connection);
  return chain(askers.ask(principal, channel, before), (asked) => {
    if (connection.principal === principal) return asked;
    asked?.right.end();
    return askFor(askers, connection, channel, before);
  });
}

const isListening = ({ state }: RealtimeConnection, { kind, name }: TopicSubscription): boolean =>
  state.subscriptions.values().some((other) => other.kind === kind && other.name === name);

function createTopicSubscribing({ topicRights, presence, broadcasts, meter }: SubscribingDeps, replacing: Replacing) {
  const begin = (connection: RealtimeConnection, subscription: TopicSubscription): void => {
    const { kind, name, id } = subscription;
    const own = connection.state.subscriptions;
    const earlier = own.get(keyOf(subscription));
    // One of the same channel goes on.
    if (earlier?.kind !== kind || earlier.name !== name) replacing.endEarlier(connection, subscription);
    connection.send({ type: "subscribed", channel: name, serverFilter: false, ...(id === null ? {} : { id }) });
    // Sending may have closed it as too slow.
    if (connection.isClosed) return;
    if (!own.has(keyOf(subscription))) meter.begun(subscription);
    own.set(keyOf(subscription), subscription);
    if (kind === "broadcast") {
      broadcasts.listen(name, connection);
      return;
    }
    // Each `subscribed` is followed by the entries of now, also on a channel that the connection listens to already.
    presence.unlisten(name, connection);
    presence.listen(name, connection);
  };
  return (
    connection: RealtimeConnection,
    request: SentFilters & { channel: Channel & { kind: "presence" | "broadcast" }; id: string | null },
  ): MaybePromise<Failure | null> => {
    const { channel, id } = request;
    const { kind, name } = channel;
    return chain(topicRights.ask(connection, channel), (isAllowed) => {
      const subscription = { kind, name, id, identity: connection.identity };
      if (!isAllowed) return replacing.refuse(connection, subscription);
      const hasFilters = (request.filters ?? null) !== null || (request.orFilters ?? null) !== null;
      if (!hasFilters && !connection.isClosed) begin(connection, subscription);
      topicRights.follow(connection, channel);
      return hasFilters ? filtersRefused() : null;
    });
  };
}

function createTableSubscribing(
  { tables, askers, subscriptions, meter, followUps }: SubscribingDeps,
  { refuse, endEarlier }: Replacing,
) {
  return (
    connection: RealtimeConnection,
    request: SentFilters & { channel: TableChannel; id: string | null; since?: number | null },
  ): MaybePromise<Failure | null> => {
    const { channel, id, since = null, filters: all, orFilters: any } = request;
    const ask = (): MaybePromise<Asked | null> => askFor(askers, connection, channel);
    // Whoever reconnects goes on where an earlier subscription has ended.
    return chain(since === null ? ask() : followUps.soon(ask), (asked) => {
      const own = connection.state.subscriptions;
      const naming = { name: channel.name, id };
      if (asked === null) return refuse(connection, naming);
      const before = own.get(keyOf(naming));
      const known = before?.kind === "table" && before.name === channel.name ? before.filters : null;
      const filters = parseFilters(tables, channel, { filters: all, orFilters: any }, known);
      if ("problem" in filters || connection.isClosed) {
        asked.right.end();
        return "problem" in filters ? failure("INVALID_FILTER", filters.problem) : null;
      }
      endEarlier(connection, naming);
      const subscription = subscriptions.begin(connection, { channel, id, filters, asked }, since);
      // Sending may have closed it as too slow.
      if (connection.isClosed) subscriptions.end(connection, subscription);
      else {
        meter.begun(subscription);
        own.set(keyOf(subscription), subscription);
      }
      // Where data changed while the rule was awaited.
      void askers.settle(subscription);
      return null;
    });
  };
}

function createFilterUpdates(
  { tables, subscriptions }: SubscribingDeps,
  find: Subscribing["find"],
): Subscribing["updateFilters"] {
  return (connection, { channel, id, ...sent }) => {
    const subscription = findTable(find, connection, { channel, id, refusal: filtersRefused() });
    if ("code" in subscription) return subscription;
    const known = subscription.filters;
    const filters = parseFilters(tables, subscription.channel, mergeFilters(sent, known), known);
    if ("problem" in filters) return failure("INVALID_FILTER", filters.problem);
    subscriptions.filter(connection, subscription, filters);
    return null;
  };
}

/** The subscription to a table that a message names. `refusal`: the answer where it is to a channel of another kind. */
function findTable(
  find: Subscribing["find"],
  connection: RealtimeConnection,
  { channel, id, refusal }: SentName & { refusal: Failure },
): TableSubscription | Failure {
  const named = id ?? channel;
  if (typeof named !== "string") return failure("INVALID_MESSAGE", "channel or id is required");
  const subscription = find(connection, { channel, id });
  if (subscription === null) return failure("NOT_SUBSCRIBED", `Not subscribed to "${named}"`);
  return subscription.kind === "table" ? subscription : refusal;
}

const filtersRefused = (): Failure => failure("INVALID_FILTER", "Only channels of tables have filters");
const notOfTable = (): Failure => failure("INVALID_CHANNEL", "Only channels of tables can be flushed");
