import { Type } from "typebox";
import { nullable } from "../../../../kernel/schema/types.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { AreaSockets } from "../../../sockets/area-sockets.ts";
import { CHANNEL_LENGTH_MAX, LISTED_CHANNELS_DEFAULT, LISTED_CHANNELS_MAX } from "../limits.ts";
import type { RealtimeState } from "../subscriptions/model.ts";
import type { Presence } from "../presence/presence.ts";
import type { ChannelMeter } from "../meter.ts";

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

export const realtimeOverviewEndpoint = (deps: {
  connections: Pick<AreaSockets<RealtimeState>, "count" | "userCount" | "serviceKeyCount">;
  meter: ChannelMeter;
  presence: Pick<Presence, "entriesOf">;
}): Endpoint =>
  endpoint(
    "GET /api/admin/realtime",
    {
      tag: "Realtime",
      summary: "List connections, and channels with their subscribers and rates",
      description: "Of this server, now.",
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
