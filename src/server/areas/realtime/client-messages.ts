import { Type } from "typebox";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { chain, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { AnyObject, optional } from "../../../kernel/schema/types.ts";
import type { TableDoor } from "../../access/table-door.ts";
import type { SignedIn, Visiting } from "../../sockets/connection.ts";
import { declareMessages, type MessageType } from "../../sockets/protocol.ts";
import { parseChannel } from "./channel.ts";
import {
  EVENT_LENGTH_MAX,
  PRESENCE_STATE_MAX_BYTES,
  REQUEST_ID_LENGTH_MAX,
  SUBSCRIPTION_ID_LENGTH_MAX,
  TRACKED_PER_CONNECTION_MAX,
} from "./limits.ts";
import { denied, type ErrorCode, type Failure, failure, otherChannel, type ServerMessage } from "./messages.ts";
import type { Rights } from "./rights.ts";
import type { RealtimeConnection, RealtimeState } from "./subscriptions/model.ts";
import type { Subscribing } from "./subscriptions/subscribing.ts";
import type { TopicRights } from "./subscriptions/topic-rights.ts";
import type { Broadcasts } from "./topics/broadcasts.ts";
import type { Presence, Tracked } from "./topics/presence.ts";

const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Filters = Type.Optional(Type.Unknown());
/** Channel name of any form: one that cannot be parsed is INVALID_CHANNEL. */
const Channel = Type.String();
/** Channel name that defaults to the connection's own channel. */
const OwnChannel = optional(Type.String());

/** Client-chosen id of a subscription. */
const Id = optional(Type.String({ minLength: 1, maxLength: SUBSCRIPTION_ID_LENGTH_MAX }));

const Subscribe = { channel: Channel, id: Id, filters: Filters, orFilters: Filters, since: optional(Seq) };
/**
 * Members of a filter update: an absent one keeps the filters in force, null clears them. A subscription with an id needs no
 * channel.
 */
const UpdateFilters = { channel: optional(Channel), id: Id, filters: Filters, orFilters: Filters };
const Unsubscribe = { channel: optional(Channel), id: Id };
/** Id that requests an answer: `done`, or an error that repeats it. */
const RequestId = optional(Type.String({ minLength: 1, maxLength: REQUEST_ID_LENGTH_MAX }));
const Flush = {
  channel: optional(Channel),
  id: Id,
  requestId: Type.String({ minLength: 1, maxLength: REQUEST_ID_LENGTH_MAX }),
};
const Track = { channel: OwnChannel, requestId: RequestId, state: AnyObject };
const Untrack = { channel: OwnChannel, requestId: RequestId };
const Broadcast = {
  requestId: RequestId,
  channel: OwnChannel,
  event: Type.String({ minLength: 1, maxLength: EVENT_LENGTH_MAX }),
  data: Type.Unsafe<JsonObject>(AnyObject),
  excludeSelf: Type.Optional(Type.Boolean()),
};

const declare = declareMessages<RealtimeState, ErrorCode>({});

export interface MessageDeps {
  tables: TableDoor;
  rights: Rights;
  topicRights: TopicRights;
  subscribing: Subscribing;
  presence: Presence;
  broadcasts: Broadcasts;
}

/** Declares the messages of clients, except `auth` and `ping`. */
export function createMessages(deps: MessageDeps): readonly MessageType<RealtimeState, ErrorCode>[] {
  const { subscribing, broadcasts, rights, tables } = deps;
  return [
    declare("subscribe", Subscribe, (connection, message) => subscribing.subscribe(connection, message)),
    declare("update_filters", UpdateFilters, (connection, message) => subscribing.updateFilters(connection, message)),
    declare("unsubscribe", Unsubscribe, (connection, message) => unsubscribe(subscribing, connection, message)),
    declare("flush", Flush, (connection, { requestId, ...named }) =>
      chain(subscribing.flush(connection, named), (failed) => {
        if (failed === null) connection.send({ type: "done", requestId });
        return failed;
      }),
    ),
    declare("track", Track, (connection, { state, ...about }, principal) =>
      onChannel(connection, about, (name) => track(deps, connection, principal, { channel: name, state })),
    ),
    declare("untrack", Untrack, (connection, about) =>
      onChannel(connection, about, (name) => untrack(deps, connection, name)),
    ),
    declare("broadcast", Broadcast, (connection, { event, data, excludeSelf = true, ...about }, principal) =>
      onChannel(connection, about, (name) => {
        if (parseChannel(name, tables)?.kind !== "broadcast") return otherChannel(name, "broadcast");
        return chain(mayBroadcast(rights, connection, principal, { name, event }), (isAllowed) => {
          if (!isAllowed) return denied("ACCESS_DENIED");
          if (connection.isClosed) return null;
          const isSent = broadcasts.send({ channel: name, event, payload: data }, excludeSelf ? connection : null);
          return isSent ? null : busy();
        });
      }),
    ),
  ];
}

/** Evaluates the broadcast rule until the answer is about the connection's current user. [RT228] */
function mayBroadcast(
  rights: Rights,
  connection: RealtimeConnection,
  principal: Visiting,
  about: { name: string; event: string },
): MaybePromise<boolean> {
  return chain(rights.broadcast(principal, about.name, about.event), (isAllowed) => {
    const present = connection.principal ?? principal;
    if (!isAllowed || present === principal) return isAllowed;
    return mayBroadcast(rights, connection, present, about);
  });
}

/** Ends a subscription. One with an id is confirmed, so that the client may reuse the id. */
function unsubscribe(
  subscribing: Subscribing,
  connection: RealtimeConnection,
  { channel, id }: { channel?: string | null; id?: string | null },
): Failure | null {
  const ended = subscribing.find(connection, { channel, id });
  ended?.end();
  if (typeof id === "string") {
    const message: ServerMessage = { type: "unsubscribed", id };
    connection.send(ended === null ? message : { ...message, channel: ended.name });
    return null;
  }
  return typeof channel === "string" ? null : failure("INVALID_MESSAGE", "channel or id is required");
}

/** Calls `work` with the channel that the message names, or with the connection's own; confirms a message with a `requestId`. */
function onChannel(
  connection: RealtimeConnection,
  { channel, requestId }: { channel?: string | null; requestId?: string | null },
  work: (name: string) => MaybePromise<Failure | null>,
): MaybePromise<Failure | null> {
  const name = channel ?? connection.state.defaultChannel;
  if (name === null)
    return failure("INVALID_MESSAGE", "channel is required, here or as ?channel= in the address of the connection");
  if (typeof requestId !== "string") return work(name);
  return chain(work(name), (failed) => {
    const done: ServerMessage = { type: "done", requestId };
    if (failed === null) connection.send(done);
    return failed;
  });
}

function track(
  { tables, topicRights, presence }: MessageDeps,
  connection: RealtimeConnection,
  principal: Visiting,
  { channel, state }: { channel: string; state: object },
): MaybePromise<Failure | null> {
  const text = JSON.stringify(state);
  const bytes = Buffer.byteLength(text);
  if (bytes > PRESENCE_STATE_MAX_BYTES) {
    return failure("STATE_TOO_LARGE", `state must have at most ${PRESENCE_STATE_MAX_BYTES} bytes, got ${bytes}`);
  }
  if (parseChannel(channel, tables)?.kind !== "presence") return otherChannel(channel, "presence");
  const begin = (user: SignedIn): Failure | null => {
    const tracked = trackedOf(topicRights, connection, user);
    if (!tracked.channels.has(channel) && tracked.channels.size >= TRACKED_PER_CONNECTION_MAX) {
      return failure("TOO_MANY_TRACKED", `A connection is tracked on at most ${TRACKED_PER_CONNECTION_MAX} channels`);
    }
    const outcome = presence.track(tracked, channel, text);
    if (outcome === "busy") return busy();
    return outcome === "full" ? failure("CHANNEL_FULL", "The channel is full") : null;
  };
  const about = { kind: "presence" as const, name: channel };
  return chain(topicRights.ask(connection, about), (isAllowed) => {
    if (!isAllowed || principal.kind === "serviceKey") return denied("ACCESS_DENIED");
    const refused = connection.isClosed || principal.kind !== "user" ? null : begin(principal);
    topicRights.follow(connection, about);
    return refused;
  });
}

function untrack({ tables, presence }: MessageDeps, connection: RealtimeConnection, channel: string): Failure | null {
  if (parseChannel(channel, tables)?.kind !== "presence") return otherChannel(channel, "presence");
  const { tracked } = connection.state;
  if (tracked !== null) presence.untrack(tracked, channel, "disconnect");
  return null;
}

const busy = (): Failure => failure("RATE_LIMITED", "The channel has more to send than it can; this one is dropped");

function trackedOf(topicRights: TopicRights, connection: RealtimeConnection, principal: SignedIn): Tracked {
  const { id, state } = connection;
  state.tracked ??= {
    connectionId: id,
    userId: principal.auth.id,
    channels: new Set(),
    lastSeen: 0,
    left: (name) => topicRights.follow(connection, { kind: "presence", name }),
  };
  return state.tracked;
}
