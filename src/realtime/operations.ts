import type { TableDoor } from "../access/table-door.ts";
import { chain, type MaybePromise } from "../kernel/maybe-promise.ts";
import type { Broadcasts } from "./broadcasts.ts";
import { parseChannel } from "./channel.ts";
import type { Connection, SignedIn } from "./connection.ts";
import { denied, type Failure, failure, type Operation, type OperationOf, unknownChannel } from "./failure.ts";
import { TRACKED_PER_SOCKET_MAX } from "./limits.ts";
import type { Presence, Tracked } from "./presence.ts";
import type { Rights } from "./rights.ts";
import type { Subscribing } from "./subscribing.ts";

/** What an authenticated connection can do; each gives the failure to answer with, or null. Decisions 10. */
export interface Operations {
  perform(connection: Connection, principal: SignedIn, message: Operation): MaybePromise<Failure | null>;
  ping(connection: Connection): void;
  /** Asks every right again; gives the channels that are no longer allowed and have been ended. */
  refresh(connection: Connection, principal: SignedIn): Promise<string[]>;
  /** Ends everything of a connection; presence of one that was lost stays until its time to live is over. */
  leave(connection: Connection, wasClean: boolean): void;
}

export function createOperations(deps: {
  tables: TableDoor;
  rights: Rights;
  subscribing: Subscribing;
  presence: Presence;
  broadcasts: Broadcasts;
}): Operations {
  const { tables, rights, subscribing, presence, broadcasts } = deps;

  const track = (
    connection: Connection,
    principal: SignedIn,
    { channel, state }: OperationOf<"track">,
  ): MaybePromise<Failure | null> => {
    if (parseChannel(channel, tables)?.kind !== "presence") return unknownChannel(channel);
    return chain(rights.presence(principal, channel), (isAllowed) => {
      if (!isAllowed) return denied("ACCESS_DENIED");
      if (connection.isClosed) return null;
      const tracked = trackedOf(connection, principal);
      if (!tracked.channels.has(channel) && tracked.channels.size >= TRACKED_PER_SOCKET_MAX) {
        return failure("TOO_MANY_TRACKED", `A connection is tracked on at most ${TRACKED_PER_SOCKET_MAX} channels`);
      }
      const outcome = presence.track(tracked, channel, state);
      if (outcome === "busy") return busy();
      return outcome === "full" ? failure("CHANNEL_FULL", "The channel is full") : null;
    });
  };

  const broadcast = (
    connection: Connection,
    principal: SignedIn,
    { channel, event, payload, excludeSelf }: OperationOf<"broadcast">,
  ): MaybePromise<Failure | null> => {
    if (parseChannel(channel, tables)?.kind !== "broadcast") return unknownChannel(channel);
    return chain(rights.broadcast(principal, channel, event), (isAllowed) => {
      if (!isAllowed) return denied("ACCESS_DENIED");
      if (connection.isClosed) return null;
      return broadcasts.send({ channel, event, payload }, excludeSelf ? connection : null) ? null : busy();
    });
  };

  const untrack = (connection: Connection, { channel }: OperationOf<"untrack">): Failure | null => {
    if (parseChannel(channel, tables)?.kind !== "presence") return unknownChannel(channel);
    if (connection.tracked !== null) presence.untrack(connection.tracked, channel, "disconnect");
    return null;
  };

  return {
    perform(connection, principal, message) {
      switch (message.type) {
        case "subscribe":
          return subscribing.subscribe(connection, principal, message);
        case "unsubscribe":
          subscribing.end(connection, message.channel);
          return null;
        case "update_filters":
          return subscribing.updateFilters(connection, message);
        case "track":
          return track(connection, principal, message);
        case "untrack":
          return untrack(connection, message);
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
        if (await subscribing.isStillAllowed(connection, principal, name, subscription)) continue;
        subscribing.end(connection, name);
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
      for (const name of [...connection.subscriptions.keys()]) subscribing.end(connection, name);
      if (wasClean && connection.tracked !== null) presence.untrack(connection.tracked, null, "disconnect");
    },
  };
}

const busy = (): Failure => failure("RATE_LIMITED", "The channel has more to send than it can; this one is dropped");

function trackedOf(connection: Connection, principal: SignedIn): Tracked {
  connection.tracked ??= { connectionId: connection.id, userId: principal.auth.id, channels: new Set(), lastSeen: 0 };
  return connection.tracked;
}
