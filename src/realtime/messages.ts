import { Type } from "typebox";
import type { TableDoor } from "../access/table-door.ts";
import type { JsonObject } from "../kernel/json/json.ts";
import { chain, type MaybePromise } from "../kernel/maybe-promise.ts";
import { AnyObject, optional } from "../kernel/schema/types.ts";
import type { SignedIn } from "../sockets/connection.ts";
import { declareMessages, type MessageType } from "../sockets/protocol.ts";
import { parseChannel } from "./channel.ts";
import { denied, type Failure, failure, unknownChannel } from "./failures.ts";
import { EVENT_LENGTH_MAX, PRESENCE_STATE_MAX_BYTES, TRACKED_PER_CONNECTION_MAX } from "./limits.ts";
import type { RealtimeConnection, RealtimeState } from "./model.ts";
import type { Presence, Tracked } from "./presence/presence.ts";
import type { Rights } from "./rights.ts";
import type { ErrorCode } from "./server-messages.ts";
import type { Subscribing } from "./subscriptions/subscribing.ts";
import type { Broadcasts } from "./topics/broadcasts.ts";

const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Filters = Type.Optional(Type.Unknown());
/** Any name: one that is no channel is INVALID_CHANNEL. */
const Channel = Type.String();
/** Defaults to the connection's own channel. */
const OwnChannel = optional(Type.String());

const Subscribe = { channel: Channel, filters: Filters, orFilters: Filters, since: optional(Seq) };
/** An absent member keeps the filters in force, null clears them. */
const UpdateFilters = { channel: Channel, filters: Filters, orFilters: Filters };
const Unsubscribe = { channel: Channel };
const Track = { channel: OwnChannel, state: AnyObject };
const Untrack = { channel: OwnChannel };
const Broadcast = {
  channel: OwnChannel,
  event: Type.String({ minLength: 1, maxLength: EVENT_LENGTH_MAX }),
  data: Type.Unsafe<JsonObject>(AnyObject),
  excludeSelf: Type.Optional(Type.Boolean()),
};

const declare = declareMessages<RealtimeState, ErrorCode>({});

export interface MessageDeps {
  tables: TableDoor;
  rights: Rights;
  subscribing: Subscribing;
  presence: Presence;
  broadcasts: Broadcasts;
}

/** The messages of clients, beside `auth` and `ping`. */
export function createMessages(deps: MessageDeps): readonly MessageType<RealtimeState, ErrorCode>[] {
  const { subscribing, broadcasts, rights, tables } = deps;
  return [
    declare("subscribe", Subscribe, (connection, message, principal) =>
      subscribing.subscribe(connection, principal, message),
    ),
    declare("update_filters", UpdateFilters, (connection, message) => subscribing.updateFilters(connection, message)),
    declare("unsubscribe", Unsubscribe, (connection, { channel }) => {
      subscribing.end(connection, channel);
      return null;
    }),
    declare("track", Track, (connection, { channel, state }, principal) =>
      onChannel(connection, channel, (name) => track(deps, connection, principal, { channel: name, state })),
    ),
    declare("untrack", Untrack, (connection, { channel }) =>
      onChannel(connection, channel, (name) => untrack(deps, connection, name)),
    ),
    declare("broadcast", Broadcast, (connection, { channel, event, data, excludeSelf = true }, principal) =>
      onChannel(connection, channel, (name) => {
        if (parseChannel(name, tables)?.kind !== "broadcast") return unknownChannel(name);
        return chain(rights.broadcast(principal, name, event), (isAllowed) => {
          if (!isAllowed) return denied("ACCESS_DENIED");
          if (connection.isClosed) return null;
          const isSent = broadcasts.send({ channel: name, event, payload: data }, excludeSelf ? connection : null);
          return isSent ? null : busy();
        });
      }),
    ),
  ];
}

/** Calls `work` with the channel that the message names, or with the connection's own. */
function onChannel(
  connection: RealtimeConnection,
  named: string | null | undefined,
  work: (name: string) => MaybePromise<Failure | null>,
): MaybePromise<Failure | null> {
  const name = named ?? connection.state.defaultChannel;
  return name === null ? failure("INVALID_MESSAGE", "channel is required") : work(name);
}

function track(
  { tables, rights, presence }: MessageDeps,
  connection: RealtimeConnection,
  principal: SignedIn,
  { channel, state }: { channel: string; state: object },
): MaybePromise<Failure | null> {
  const text = JSON.stringify(state);
  const bytes = Buffer.byteLength(text);
  if (bytes > PRESENCE_STATE_MAX_BYTES) {
    return failure("STATE_TOO_LARGE", `state must have at most ${PRESENCE_STATE_MAX_BYTES} bytes, got ${bytes}`);
  }
  if (parseChannel(channel, tables)?.kind !== "presence") return unknownChannel(channel);
  return chain(rights.presence(principal, channel), (isAllowed) => {
    if (!isAllowed) return denied("ACCESS_DENIED");
    if (connection.isClosed) return null;
    const tracked = trackedOf(connection, principal);
    if (!tracked.channels.has(channel) && tracked.channels.size >= TRACKED_PER_CONNECTION_MAX) {
      return failure("TOO_MANY_TRACKED", `A connection is tracked on at most ${TRACKED_PER_CONNECTION_MAX} channels`);
    }
    const outcome = presence.track(tracked, channel, text);
    if (outcome === "busy") return busy();
    return outcome === "full" ? failure("CHANNEL_FULL", "The channel is full") : null;
  });
}

function untrack({ tables, presence }: MessageDeps, connection: RealtimeConnection, channel: string): Failure | null {
  if (parseChannel(channel, tables)?.kind !== "presence") return unknownChannel(channel);
  const { tracked } = connection.state;
  if (tracked !== null) presence.untrack(tracked, channel, "disconnect");
  return null;
}

const busy = (): Failure => failure("RATE_LIMITED", "The channel has more to send than it can; this one is dropped");

function trackedOf({ id, state }: RealtimeConnection, principal: SignedIn): Tracked {
  state.tracked ??= { connectionId: id, userId: principal.auth.id, channels: new Set(), lastSeen: 0 };
  return state.tracked;
}
