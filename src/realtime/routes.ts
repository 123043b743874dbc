import { type AnyElysia, Elysia } from "elysia";
import { Type } from "typebox";
import { requireServiceKey } from "../access/service-key-right.ts";
import type { Http } from "../http/http.ts";
import { operation } from "../http/operation.ts";
import type { PendingPlaces, Release } from "../http/pending-places.ts";
import { OK } from "../http/reply.ts";
import type { SocketServer } from "../http/sockets.ts";
import { clientNetwork } from "../kernel/client-network.ts";
import { badField } from "../kernel/errors.ts";
import { Fields } from "../kernel/fields.ts";
import { chain } from "../kernel/maybe-promise.ts";
import { type Broadcasts, channelIsBusy, checkBroadcast } from "./broadcasts.ts";
import type { Connection } from "./connection.ts";
import type { Connections } from "./connections.ts";
import { BROADCAST_BODY_MAX_BYTES, CHANNEL_LENGTH_MAX } from "./limits.ts";

/** A connection that is about to open. */
export type Connect = (client: string, releasePlace: Release, defaultChannel: string | null) => Connection;

export function createRealtimeRoutes(
  http: Http,
  deps: {
    sockets: SocketServer;
    connections: Connections;
    pending: PendingPlaces;
    broadcasts: Broadcasts;
    connect: Connect;
  },
): AnyElysia {
  const open = (request: Request, client: string, release: Release, channel: string | null): Response => {
    let isCounted = false;
    try {
      deps.connections.admit(client);
      isCounted = true;
      return deps.sockets.upgrade(request, deps.connect(client, release, channel));
    } catch (cause) {
      release();
      if (isCounted) deps.connections.withdraw(client);
      throw cause;
    }
  };
  const connectRoute = http.route(
    ({ request, query, address }) => {
      const channel = query().get("channel");
      if (channel !== null && channel.length > CHANNEL_LENGTH_MAX) {
        throw badField("channel", "too_long", `channel must have at most ${CHANNEL_LENGTH_MAX} characters`);
      }
      const client = clientNetwork(address());
      return chain(deps.pending.take(client, request.signal), (release) =>
        open(request, client, release, channel === "" ? null : channel),
      );
    },
    { public: true },
  );
  const broadcastRoute = http.route(
    async ({ principal, jsonObject }) => {
      requireServiceKey(principal, ["realtime", "*", "*", "broadcast"]);
      const fields = new Fields(await jsonObject());
      const [channel, event, payload] = ["channel", "event", "payload"].map((name) => fields.value(name));
      fields.finish();
      if (!deps.broadcasts.send(checkBroadcast(channel, event, payload))) throw channelIsBusy();
      return OK;
    },
    { invalidKeyStatus: 403, bodyMaxBytes: BROADCAST_BODY_MAX_BYTES },
  );

  return new Elysia()
    .get(
      "/api/realtime",
      connectRoute,
      operation({
        tag: "Realtime",
        summary: "Connect to realtime",
        description: "A WebSocket; its first message is `auth`.",
        security: "open",
        query: [{ name: "channel", description: "What track, untrack and broadcast act on" }],
        answers: { 101: { description: "The connection is a WebSocket" } },
        errors: [400],
      }),
    )
    .post(
      "/api/realtime/broadcast",
      broadcastRoute,
      operation({
        tag: "Realtime",
        summary: "Send to the subscribers of a broadcast channel",
        security: "serviceKey",
        body: {
          schema: Type.Object({
            channel: Type.String({ description: "With its prefix `broadcast:`" }),
            event: Type.String(),
            payload: Type.Object({}, { additionalProperties: true }),
          }),
        },
        answers: { 200: { description: "Sent", schema: Type.Object({ ok: Type.Literal(true) }) } },
        errors: [400, 401, 403, 413, 415, 503],
      }),
    );
}
