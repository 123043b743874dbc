import type { ReadAccess, TableDoor } from "../../access/table-door.ts";
import { AppError } from "../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { SignedIn } from "../../sockets/connection.ts";
import { type Channel, parseChannel } from "../channel.ts";
import { denied, type Failure, failure, type RealtimeConnection, unknownChannel } from "../connection.ts";
import { SUBSCRIPTIONS_PER_SOCKET_MAX } from "../limits.ts";
import type { Presence } from "../presence/presence.ts";
import { LISTENING, type Rights } from "../rights.ts";
import type { Broadcasts } from "../topics/broadcasts.ts";
import type {
  Filters,
  SentFilters,
  Subscription,
  TableChannel,
  TableSubscription,
  TableSubscriptions,
} from "./table-subscriptions.ts";

export interface UpdateFiltersMessage extends SentFilters {
  channel: string;
}

export interface SubscribeMessage extends UpdateFiltersMessage {
  /** The `seq` of the last event that the client has; null or absent: it begins. */
  since?: number | null;
}

/** Listening to channels of every kind. Decisions 10. */
export interface Subscribing {
  subscribe(
    connection: RealtimeConnection,
    principal: SignedIn,
    message: SubscribeMessage,
  ): MaybePromise<Failure | null>;
  updateFilters(connection: RealtimeConnection, message: UpdateFiltersMessage): Failure | null;
  /** Ends the subscription to this channel, if there is one. */
  end(connection: RealtimeConnection, name: string): void;
  /** The rule was asked again, and said this; null: nothing any more. */
  follow(connection: RealtimeConnection, subscription: TableSubscription, access: ReadAccess | null): void;
  /** Asks the right again: a table's view follows it. */
  isStillAllowed(
    connection: RealtimeConnection,
    principal: SignedIn,
    name: string,
    subscription: Subscription,
  ): MaybePromise<boolean>;
}

interface SubscribingDeps {
  tables: TableDoor;
  rights: Rights;
  subscriptions: TableSubscriptions;
  presence: Presence;
  broadcasts: Broadcasts;
}

export function createSubscribing(deps: SubscribingDeps): Subscribing {
  const { tables, rights, subscriptions, presence, broadcasts } = deps;
  /** What there was ends too: the right to it is gone. */
  const refuse = (connection: RealtimeConnection, name: string): Failure => {
    end(connection, name);
    return denied("SUBSCRIBE_DENIED");
  };
  const subscribeToTable = createTableSubscribing(deps, { refuse, end: (connection, name) => end(connection, name) });

  const end = (connection: RealtimeConnection, name: string): void => {
    const subscription = connection.state.subscriptions.get(name);
    if (subscription === undefined) return;
    connection.state.subscriptions.delete(name);
    if (subscription.kind === "table") subscriptions.end(connection, subscription);
    else if (subscription.kind === "presence") presence.unlisten(name, connection);
    else broadcasts.unlisten(name, connection);
  };

  const mayListen = (principal: SignedIn, channel: Channel & { kind: "presence" | "broadcast" }) =>
    channel.kind === "presence"
      ? rights.presence(principal, channel.name)
      : rights.broadcast(principal, channel.name, LISTENING);

  const subscribe = (
    connection: RealtimeConnection,
    principal: SignedIn,
    message: SubscribeMessage,
  ): MaybePromise<Failure | null> => {
    const channel = parseChannel(message.channel, tables);
    if (channel === null) return unknownChannel(message.channel);
    const { subscriptions: own } = connection.state;
    if (!own.has(channel.name) && own.size >= SUBSCRIPTIONS_PER_SOCKET_MAX) {
      return failure(
        "TOO_MANY_SUBSCRIPTIONS",
        `A connection has at most ${SUBSCRIPTIONS_PER_SOCKET_MAX} subscriptions`,
      );
    }
    if (channel.kind === "table") return subscribeToTable(connection, principal, channel, message);
    return chain(mayListen(principal, channel), (isAllowed) => {
      if (!isAllowed) return refuse(connection, channel.name);
      if ((message.filters ?? null) !== null || (message.orFilters ?? null) !== null) {
        return failure("INVALID_FILTER", "Only channels of tables take filters");
      }
      if (connection.isClosed) return null;
      end(connection, channel.name);
      connection.send({ type: "subscribed", channel: channel.name, serverFilter: false });
      // What was sent may have closed it, as too slow.
      if (connection.isClosed) return null;
      connection.state.subscriptions.set(channel.name, { kind: channel.kind });
      if (channel.kind === "presence") presence.listen(channel.name, connection);
      else broadcasts.listen(channel.name, connection);
      return null;
    });
  };

  const isStillAllowed = (
    connection: RealtimeConnection,
    principal: SignedIn,
    name: string,
    subscription: Subscription,
  ): MaybePromise<boolean> => {
    if (subscription.kind !== "table") return mayListen(principal, { kind: subscription.kind, name });
    return chain(rights.readTable(principal, subscription.channel, subscription.access), (access) => {
      if (access === null) return false;
      if (!subscription.isEnded) subscriptions.adopt(connection, subscription, access);
      return true;
    });
  };

  const follow: Subscribing["follow"] = (connection, subscription, access) => {
    const { principal } = connection;
    if (subscription.isEnded || principal === null) return;
    if (access !== null) return subscriptions.adopt(connection, subscription, access);
    const { name } = subscription.channel;
    end(connection, name);
    connection.send({ type: "auth_refreshed", userId: principal.auth.id, revokedChannels: [name] });
  };

  return { follow, subscribe, end, isStillAllowed, updateFilters: createFilterUpdates(subscriptions) };
}

function createTableSubscribing(
  { rights, subscriptions }: SubscribingDeps,
  {
    refuse,
    end,
  }: {
    refuse(connection: RealtimeConnection, name: string): Failure;
    end(connection: RealtimeConnection, name: string): void;
  },
) {
  return (
    connection: RealtimeConnection,
    principal: SignedIn,
    channel: TableChannel,
    { filters, orFilters, since = null }: SubscribeMessage,
  ): MaybePromise<Failure | null> =>
    chain(rights.readTable(principal, channel), (access) => {
      if (access === null) return refuse(connection, channel.name);
      const before = connection.state.subscriptions.get(channel.name);
      const known = before?.kind === "table" ? before.filters : null;
      const parsed = attempt(() => subscriptions.parseFilters(channel, { filters, orFilters }, known));
      if ("problem" in parsed) return failure("INVALID_FILTER", parsed.problem);
      if (connection.isClosed) return null;
      end(connection, channel.name);
      const parts = { channel, filters: parsed.value, access };
      const subscription = subscriptions.begin(connection, parts, {
        since,
        announce: ({ seq, isLost }) =>
          connection.send({
            type: "subscribed",
            channel: channel.name,
            serverFilter: parsed.value.filter !== null,
            seq,
            ...(isLost ? { resync: true } : {}),
          }),
      });
      // What was sent may have closed it, as too slow.
      if (connection.isClosed) subscriptions.end(connection, subscription);
      else connection.state.subscriptions.set(channel.name, subscription);
      return null;
    });
}

function createFilterUpdates(subscriptions: TableSubscriptions): Subscribing["updateFilters"] {
  return (connection, message) => {
    const subscription = connection.state.subscriptions.get(message.channel);
    if (subscription === undefined) return failure("NOT_SUBSCRIBED", `Not subscribed to "${message.channel}"`);
    if (subscription.kind !== "table") return failure("INVALID_FILTER", "Only channels of tables take filters");
    const known = subscription.filters;
    const parsed = attempt(() => subscriptions.parseFilters(subscription.channel, merged(message, known), known));
    if ("problem" in parsed) return failure("INVALID_FILTER", parsed.problem);
    subscription.filters = parsed.value;
    const serverFilter = parsed.value.filter !== null;
    connection.send({ type: "filters_updated", channel: message.channel, serverFilter });
    if (parsed.value !== known) subscriptions.change(connection, subscription);
    return null;
  };
}

/** What is absent stays as it is. */
function merged({ filters, orFilters }: SentFilters, known: Filters): SentFilters {
  if (filters !== undefined && orFilters !== undefined) return { filters, orFilters };
  const [knownFilters, knownOrFilters]: unknown[] = JSON.parse(known.text);
  return {
    filters: filters === undefined ? knownFilters : filters,
    orFilters: orFilters === undefined ? knownOrFilters : orFilters,
  };
}

/** A refused filter's message is the client's to read. */
function attempt<T>(parse: () => T): { value: T } | { problem: string } {
  try {
    return { value: parse() };
  } catch (cause) {
    if (cause instanceof AppError && cause.status === 400) return { problem: cause.message };
    throw cause;
  }
}
