import { Type } from "typebox";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { OK } from "../../http/reply.ts";
import type { AreaSockets } from "../../sockets/area-sockets.ts";
import type { ConnectionLimits } from "../../sockets/connection.ts";
import type { PendingPlaces } from "../../sockets/pending-places.ts";
import { BROADCAST_BODY_MAX_BYTES, CHANNEL_LENGTH_MAX } from "./limits.ts";
import type { RealtimeState } from "./subscriptions/model.ts";
import { Broadcast, type Broadcasts, channelIsBusy, checkPayload } from "./topics/broadcasts.ts";

const Ok = Type.Object({ ok: Type.Literal(true) }, { description: "Sent" });
export function realtimeEndpoints(deps: {
  connections: AreaSockets<RealtimeState>;
  limits: ConnectionLimits;
  places: PendingPlaces;
  broadcasts: Broadcasts;
}): readonly Endpoint[] {
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
  return [connect, broadcast];
}
