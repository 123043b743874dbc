import type { TableDoor } from "../access/table-door.ts";
import { AppError } from "../kernel/errors.ts";
import { chain, type MaybePromise } from "../kernel/maybe-promise.ts";
import type { Broadcasts } from "./broadcasts.ts";
import { type Channel, parseChannel } from "./channel.ts";
import type { ClientMessage } from "./client-message.ts";
import type { Connection, SignedIn } from "./connection.ts";
import type { ErrorCode } from "./encoding.ts";
import { SUBSCRIPTIONS_PER_SOCKET_MAX, TRACKED_PER_SOCKET_MAX } from "./limits.ts";
import type { Presence, Tracked } from "./presence.ts";
import { LISTENING, type Rights } from "./rights.ts";
import type { Subscription, TableChannel, TableSubscriptions } from "./subscription.ts";

export interface Failure {
  code: ErrorCode;
  message: string;
}

export type Operation = Exclude<ClientMessage, { type: "auth" } | { type: "ping" }>;
type Ask<T extends Operation["type"]> = Operation & { type: T };

/** What an authenticated connection can do; each gives the failure to answer with, or null. Decisions 10. */
export interface Operations {
  perform(connection: Connection, principal: SignedIn, message: Operation): MaybePromise<Failure | null>;
  ping(connection: Connection): void;
  /** Asks every right again; gives the channels that are no longer allowed and have been ended. */
  refresh(connection: Connection, principal: SignedIn): Promise<string[]>;
  /** Ends everything of a connection; presence of one that was lost stays until its time to live is over. */
  leave(connection: Connection, wasClean: boolean): void;
}

const failure = (code: ErrorCode, message: string): Failure => ({ code, message });
const unknownChannel = (name: string): Failure => failure("INVALID_CHANNEL", `There is no channel "${name}"`);
const denied = (code: "SUBSCRIBE_DENIED" | "ACCESS_DENIED"): Failure => failure(code, "Access denied");

export function createOperations(deps: {
  tables: TableDoor;
  rights: Rights;
  subscriptions: TableSubscriptions;
  presence: Presence;
  broadcasts: Broadcasts;
}): Operations {
  const { tables, rights, subscriptions, presence, broadcasts } = deps;

  const end = (connection: Connection, name: string): void => {
    const subscription = connection.subscriptions.get(name);
    if (subscription === undefined) return;
    connection.subscriptions.delete(name);
    if (subscription.kind === "table") subscriptions.end(connection, subscription);
    else if (subscription.kind === "presence") presence.unlisten(name, connection);
    else broadcasts.unlisten(name, connection);
  };

  const subscribeToTable = (
    connection: Connection,
    principal: SignedIn,
    channel: TableChannel,
    { filters, orFilters, since }: Ask<"subscribe">,
  ): MaybePromise<Failure | null> =>
    chain(rights.readTable(principal, channel), (access) => {
      if (access === null) return denied("SUBSCRIBE_DENIED");
      const filter = parsed(() => subscriptions.parseFilters(channel, { filters, orFilters }));
      if ("problem" in filter) return failure("INVALID_FILTER", filter.problem);
      if (connection.isClosed) return null;
      end(connection, channel.name);
      const parts = { channel, filters: { filters, orFilters }, access, filter: filter.value };
      const subscription = subscriptions.begin(connection, parts, {
        since,
        announce: ({ seq, isLost }) =>
          connection.send({
            type: "subscribed",
            channel: channel.name,
            serverFilter: filter.value !== null,
            seq,
            ...(isLost ? { resync: true } : {}),
          }),
      });
      connection.subscriptions.set(channel.name, subscription);
      return null;
    });

  const mayListen = (principal: SignedIn, channel: Channel & { kind: "presence" | "broadcast" }) =>
    channel.kind === "presence"
      ? rights.presence(principal, channel.name)
      : rights.broadcast(principal, channel.name, LISTENING);

  const subscribe = (
    connection: Connection,
    principal: SignedIn,
    message: Ask<"subscribe">,
  ): MaybePromise<Failure | null> => {
    const channel = parseChannel(message.channel, tables);
    if (channel === null) return unknownChannel(message.channel);
    const { subscriptions: own } = connection;
    if (!own.has(channel.name) && own.size >= SUBSCRIPTIONS_PER_SOCKET_MAX) {
      return failure(
        "TOO_MANY_SUBSCRIPTIONS",
        `A connection has at most ${SUBSCRIPTIONS_PER_SOCKET_MAX} subscriptions`,
      );
    }
    if (channel.kind === "table") return subscribeToTable(connection, principal, channel, message);
    return chain(mayListen(principal, channel), (isAllowed) => {
      if (!isAllowed) return denied("SUBSCRIBE_DENIED");
      if ((message.filters ?? null) !== null || (message.orFilters ?? null) !== null) {
        return failure("INVALID_FILTER", "Only channels of tables take filters");
      }
      if (connection.isClosed) return null;
      connection.subscriptions.set(channel.name, { kind: channel.kind });
      connection.send({ type: "subscribed", channel: channel.name, serverFilter: false });
      if (channel.kind === "presence") connection.sendText(presence.listen(channel.name, connection));
      else broadcasts.listen(channel.name, connection);
      return null;
    });
  };

  const updateFilters = (connection: Connection, message: Ask<"update_filters">): Failure | null => {
    const subscription = connection.subscriptions.get(message.channel);
    if (subscription === undefined) return failure("NOT_SUBSCRIBED", `Not subscribed to "${message.channel}"`);
    if (subscription.kind !== "table") return failure("INVALID_FILTER", "Only channels of tables take filters");
    const { filters = subscription.filters.filters, orFilters = subscription.filters.orFilters } = message;
    const filter = parsed(() => subscriptions.parseFilters(subscription.channel, { filters, orFilters }));
    if ("problem" in filter) return failure("INVALID_FILTER", filter.problem);
    subscription.filters = { filters, orFilters };
    subscription.filter = filter.value;
    const serverFilter = filter.value !== null;
    connection.send({ type: "filters_updated", channel: message.channel, serverFilter });
    subscriptions.change(connection, subscription);
    return null;
  };

  const track = (
    connection: Connection,
    principal: SignedIn,
    { channel, state }: Ask<"track">,
  ): MaybePromise<Failure | null> => {
    if (parseChannel(channel, tables)?.kind !== "presence") return unknownChannel(channel);
    return chain(rights.presence(principal, channel), (isAllowed) => {
      if (!isAllowed) return denied("ACCESS_DENIED");
      if (connection.isClosed) return null;
      const tracked = trackedOf(connection, principal);
      if (!tracked.channels.has(channel) && tracked.channels.size >= TRACKED_PER_SOCKET_MAX) {
        return failure("TOO_MANY_TRACKED", `A connection is tracked on at most ${TRACKED_PER_SOCKET_MAX} channels`);
      }
      return presence.track(tracked, channel, state) ? null : failure("CHANNEL_FULL", "The channel is full");
    });
  };

  const broadcast = (
    connection: Connection,
    principal: SignedIn,
    { channel, event, payload, excludeSelf }: Ask<"broadcast">,
  ): MaybePromise<Failure | null> => {
    if (parseChannel(channel, tables)?.kind !== "broadcast") return unknownChannel(channel);
    return chain(rights.broadcast(principal, channel, event), (isAllowed) => {
      if (!isAllowed) return denied("ACCESS_DENIED");
      if (!connection.isClosed) broadcasts.send({ channel, event, payload }, excludeSelf ? connection : null);
      return null;
    });
  };

  const isStillAllowed = (
    connection: Connection,
    principal: SignedIn,
    name: string,
    subscription: Subscription,
  ): MaybePromise<boolean> => {
    if (subscription.kind !== "table") return mayListen(principal, { kind: subscription.kind, name });
    return chain(rights.readTable(principal, subscription.channel), (access) => {
      if (access === null) return false;
      if (subscription.isEnded) return true;
      subscription.access = access;
      subscriptions.change(connection, subscription);
      return true;
    });
  };

  return {
    perform(connection, principal, message) {
      switch (message.type) {
        case "subscribe":
          return subscribe(connection, principal, message);
        case "unsubscribe":
          end(connection, message.channel);
          return null;
        case "update_filters":
          return updateFilters(connection, message);
        case "track":
          return track(connection, principal, message);
        case "untrack":
          if (parseChannel(message.channel, tables)?.kind !== "presence") return unknownChannel(message.channel);
          if (connection.tracked !== null) presence.untrack(connection.tracked, message.channel, "disconnect");
          return null;
        case "broadcast":
          return broadcast(connection, principal, message);
      }
    },
    ping(connection) {
      if (connection.tracked !== null) presence.touch(connection.tracked);
    },
    async refresh(connection, principal) {
      const revoked: string[] = [];
      for (const [name, subscription] of [...connection.subscriptions]) {
        if (await isStillAllowed(connection, principal, name, subscription)) continue;
        end(connection, name);
        revoked.push(name);
      }
      const { tracked } = connection;
      for (const name of [...(tracked?.channels ?? [])]) {
        if (tracked === null || (await rights.presence(principal, name))) continue;
        presence.untrack(tracked, name, "disconnect");
        if (!revoked.includes(name)) revoked.push(name);
      }
      return revoked;
    },
    leave(connection, wasClean) {
      for (const name of [...connection.subscriptions.keys()]) end(connection, name);
      if (wasClean && connection.tracked !== null) presence.untrack(connection.tracked, null, "disconnect");
    },
  };
}

/** A refused filter's message is the client's to read. */
function parsed<T>(parse: () => T): { value: T } | { problem: string } {
  try {
    return { value: parse() };
  } catch (cause) {
    if (cause instanceof AppError && cause.status === 400) return { problem: cause.message };
    throw cause;
  }
}

function trackedOf(connection: Connection, principal: SignedIn): Tracked {
  connection.tracked ??= { connectionId: connection.id, userId: principal.auth.id, channels: new Set(), lastSeen: 0 };
  return connection.tracked;
}
