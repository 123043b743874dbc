import { Type } from "typebox";
import { nullable } from "../../../kernel/schema/types.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { OK } from "../../http/reply.ts";
import type { AreaSockets } from "../../sockets/area-sockets.ts";
import type { ConnectionLimits } from "../../sockets/connection.ts";
import type { PendingPlaces } from "../../sockets/pending-places.ts";
import { BROADCAST_BODY_MAX_BYTES, CHANNEL_LENGTH_MAX } from "./limits.ts";
import type { ChannelMeter } from "./meter.ts";
import type { RealtimeState } from "./subscriptions/model.ts";
import { Broadcast, type Broadcasts, channelIsBusy, checkPayload } from "./topics/broadcasts.ts";
import type { Presence } from "./topics/presence.ts";

const LISTED_CHANNELS_DEFAULT = 100;
const LISTED_CHANNELS_MAX = 500;

interface EndpointDeps {
  connections: AreaSockets<RealtimeState>;
  limits: ConnectionLimits;
  places: PendingPlaces;
  broadcasts: Broadcasts;
  meter: ChannelMeter;
  presence: Presence;
}

const Ok = Type.Object({ ok: Type.Literal(true) }, { description: "Sent" });

const Overview = Type.Object({
  connections: Type.Object({
    total: Type.Integer({ description: "Those that have not authenticated yet included" }),
    users: Type.Integer({ description: "Different users" }),
    serviceKeys: Type.Integer({ description: "Connections of service keys" }),
  }),
  subscriptions: Type.Integer(),
  channels: Type.Array(
    Type.Object({
      name: Type.String(),
      kind: Type.Enum(["table", "presence", "broadcast"]),
      subscribers: Type.Integer({ description: "Subscriptions; a connection may have several to a table" }),
      messages: Type.Integer({ description: "Messages since its first subscriber, each counted once" }),
      perSecond: Type.Number({ description: "Messages a second, over the last ten seconds" }),
      entries: nullable(Type.Integer({ description: "Of a presence channel" })),
    }),
    { description: "Channels with subscribers, the largest first" },
  ),
  total: Type.Integer({ description: "Channels that `prefix` selects, listed or not" }),
});

export function realtimeEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  const { connections, limits, places, broadcasts } = deps;
  const connect = endpoint(
    "GET /api/realtime",
    {
      tag: "Realtime",
      summary: "Connect to realtime",
      description: "A WebSocket. Its first message is `auth`.",
      caller: "open",
      place: "none",
      query: {
        channel: Type.Optional(
          Type.String({ maxLength: CHANNEL_LENGTH_MAX, description: "The channel of track, untrack and broadcast" }),
        ),
      },
      answers: { 101: { description: "The connection is a WebSocket" } },
      errors: [400],
    },
    (context) => {
      const { channel = "" } = context.query();
      const defaultChannel = channel === "" ? null : channel;
      const state = (): RealtimeState => ({
        defaultChannel,
        subscriptions: new Map(),
        tracked: null,
        topicRights: new Map(),
      });
      return connections.open(context, { limits, places, state });
    },
  );
  const broadcast = endpoint(
    "POST /api/realtime/broadcast",
    {
      tag: "Realtime",
      summary: "Send to the subscribers of a broadcast channel",
      caller: "serviceKey",
      place: "none",
      wrongKeyStatus: 403,
      body: Broadcast,
      bodyMaxBytes: BROADCAST_BODY_MAX_BYTES,
      answers: { 200: Ok },
      errors: [503],
    },
    async ({ principal, body }) => {
      requireServiceKey(principal, ["realtime", "*", "*", "broadcast"]);
      const sent = await body();
      checkPayload(sent);
      if (!broadcasts.send(sent)) throw channelIsBusy();
      return OK;
    },
  );
  return [connect, broadcast, overviewEndpoint(deps)];
}

const overviewEndpoint = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "GET /api/admin/realtime",
    {
      tag: "Realtime",
      summary: "List connections, and channels with their subscribers and rates",
      description: "The present state of this server.",
      caller: "serviceKey",
      place: "none",
      query: {
        prefix: Type.Optional(
          Type.String({
            maxLength: CHANNEL_LENGTH_MAX,
            description: "The beginning of the name, such as `broadcast:`",
          }),
        ),
        sort: Type.Optional(Type.Enum(["subscribers", "rate"], { default: "subscribers" })),
        limit: Type.Optional(
          Type.Integer({ minimum: 1, maximum: LISTED_CHANNELS_MAX, default: LISTED_CHANNELS_DEFAULT }),
        ),
      },
      answers: { 200: Overview },
      errors: [400],
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, ["realtime", "*", "*", "read"]);
      const { prefix = "", sort = "subscribers", limit = LISTED_CHANNELS_DEFAULT } = query();
      const { channels, total, subscriptions } = await deps.meter.list({ prefix, sort, limit });
      const { count, userCount, serviceKeyCount } = deps.connections;
      return {
        connections: { total: count, users: userCount, serviceKeys: serviceKeyCount },
        subscriptions,
        channels: channels.map((channel) => ({
          ...channel,
          entries: channel.kind === "presence" ? deps.presence.entriesOf(channel.name) : null,
        })),
        total,
      };
    },
  );
