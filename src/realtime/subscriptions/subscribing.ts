import type { ReadAccess, TableDoor } from "../../access/table-door.ts";
import { chain, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { SignedIn } from "../../sockets/connection.ts";
import { type Channel, parseChannel } from "../channel.ts";
import { denied, type Failure, failure, unknownChannel } from "../failures.ts";
import { SUBSCRIPTIONS_PER_CONNECTION_MAX } from "../limits.ts";
import type { RealtimeConnection, Subscription, TableChannel, TableSubscription } from "../model.ts";
import type { Presence } from "../presence/presence.ts";
import { LISTENING, type Rights } from "../rights.ts";
import type { Broadcasts } from "../topics/broadcasts.ts";
import { mergeFilters, parseFilters, type SentFilters } from "./filters.ts";
import type { TableSubscriptions } from "./table-subscriptions.ts";

interface FilterUpdate extends SentFilters {
  channel: string;
}

interface SubscribeRequest extends FilterUpdate {
  /** The `seq` of the last event that the client has; null or absent: the subscription starts with the next change. */
  since?: number | null;
}

/** Subscriptions to channels of every kind. Functions with a `Failure` return null when they have succeeded. */
export interface Subscribing {
  subscribe(
    connection: RealtimeConnection,
    principal: SignedIn,
    request: SubscribeRequest,
  ): MaybePromise<Failure | null>;
  updateFilters(connection: RealtimeConnection, update: FilterUpdate): Failure | null;
  /** Ends the subscription to this channel, if there is one. */
  end(connection: RealtimeConnection, name: string): void;
  /** Applies what the rule returned when it was evaluated again; null: it denies. */
  follow(connection: RealtimeConnection, subscription: TableSubscription, access: ReadAccess | null): void;
  /** Evaluates the right again. A table's subscription continues with what it shows now. */
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

  const end = (connection: RealtimeConnection, name: string): void => {
    const own = connection.state.subscriptions;
    const subscription = own.get(name);
    if (subscription === undefined) return;
    own.delete(name);
    if (subscription.kind === "table") subscriptions.end(connection, subscription);
    else if (subscription.kind === "presence") presence.unlisten(name, connection);
    else broadcasts.unlisten(name, connection);
  };
  /** Ends an earlier subscription too: the right to it is gone. */
  const refuse = (connection: RealtimeConnection, name: string): Failure => {
    end(connection, name);
    return denied("SUBSCRIBE_DENIED");
  };
  const subscribeToTable = createTableSubscribing(deps, { refuse, end });

  const mayListen = (principal: SignedIn, channel: Channel & { kind: "presence" | "broadcast" }) =>
    channel.kind === "presence"
      ? rights.presence(principal, channel.name)
      : rights.broadcast(principal, channel.name, LISTENING);

  const subscribe: Subscribing["subscribe"] = (connection, principal, request) => {
    const channel = parseChannel(request.channel, tables);
    if (channel === null) return unknownChannel(request.channel);
    const own = connection.state.subscriptions;
    if (!own.has(channel.name) && own.size >= SUBSCRIPTIONS_PER_CONNECTION_MAX) {
      const message = `A connection has at most ${SUBSCRIPTIONS_PER_CONNECTION_MAX} subscriptions`;
      return failure("TOO_MANY_SUBSCRIPTIONS", message);
    }
    if (channel.kind === "table") return subscribeToTable(connection, principal, channel, request);
    return chain(mayListen(principal, channel), (isAllowed) => {
      if (!isAllowed) return refuse(connection, channel.name);
      if ((request.filters ?? null) !== null || (request.orFilters ?? null) !== null) return filtersRefused();
      if (connection.isClosed) return null;
      end(connection, channel.name);
      connection.send({ type: "subscribed", channel: channel.name, serverFilter: false });
      // Sending may have closed it as too slow.
      if (connection.isClosed) return null;
      own.set(channel.name, { kind: channel.kind });
      if (channel.kind === "presence") presence.listen(channel.name, connection);
      else broadcasts.listen(channel.name, connection);
      return null;
    });
  };

  return {
    subscribe,
    end,
    isStillAllowed(connection, principal, name, subscription) {
      if (subscription.kind !== "table") return mayListen(principal, { kind: subscription.kind, name });
      return chain(rights.readTable(principal, subscription.channel, { before: subscription.access }), (access) => {
        if (access === null) return false;
        if (!subscription.isEnded) subscriptions.adopt(connection, subscription, access);
        return true;
      });
    },
    follow(connection, subscription, access) {
      const { principal } = connection;
      if (subscription.isEnded || principal === null) return;
      if (access !== null) return subscriptions.adopt(connection, subscription, access);
      const { name } = subscription.channel;
      end(connection, name);
      connection.send({ type: "auth_refreshed", userId: principal.auth.id, revokedChannels: [name] });
    },
    updateFilters: createFilterUpdates(deps),
  };
}

function createTableSubscribing(
  { tables, rights, subscriptions }: SubscribingDeps,
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
    { since = null, ...sent }: SubscribeRequest,
  ): MaybePromise<Failure | null> =>
    chain(rights.readTable(principal, channel), (access) => {
      const own = connection.state.subscriptions;
      if (access === null) return refuse(connection, channel.name);
      const before = own.get(channel.name);
      const filters = parseFilters(tables, channel, sent, before?.kind === "table" ? before.filters : null);
      if ("problem" in filters) return failure("INVALID_FILTER", filters.problem);
      if (connection.isClosed) return null;
      end(connection, channel.name);
      const serverFilter = filters.filter !== null;
      const subscription = subscriptions.begin(
        connection,
        { channel, filters, access },
        {
          since,
          announce({ seq, isLost }) {
            const resync = isLost ? true : undefined;
            connection.send({ type: "subscribed", channel: channel.name, serverFilter, seq, resync });
          },
        },
      );
      // Sending may have closed it as too slow.
      if (connection.isClosed) subscriptions.end(connection, subscription);
      else own.set(channel.name, subscription);
      return null;
    });
}

function createFilterUpdates({ tables, subscriptions }: SubscribingDeps): Subscribing["updateFilters"] {
  return (connection, { channel, ...sent }) => {
    const subscription = connection.state.subscriptions.get(channel);
    if (subscription === undefined) return failure("NOT_SUBSCRIBED", `Not subscribed to "${channel}"`);
    if (subscription.kind !== "table") return filtersRefused();
    const known = subscription.filters;
    const filters = parseFilters(tables, subscription.channel, mergeFilters(sent, known), known);
    if ("problem" in filters) return failure("INVALID_FILTER", filters.problem);
    subscription.filters = filters;
    connection.send({ type: "filters_updated", channel, serverFilter: filters.filter !== null });
    if (filters !== known) subscriptions.change(connection, subscription);
    return null;
  };
}

const filtersRefused = (): Failure => failure("INVALID_FILTER", "Only channels of tables have filters");
