import { type AnyElysia, Elysia } from "elysia";
import { Type } from "typebox";
import type { Http } from "../http/http.ts";
import { operation } from "../http/operation.ts";
import type { Query } from "../http/query.ts";
import { clientNetwork } from "../kernel/client-network.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { chain } from "../kernel/maybe-promise.ts";
import type { Release } from "../sockets/pending-places.ts";
import type { SocketServer } from "../sockets/server/socket-server.ts";
import type { Connections } from "./connections.ts";
import type { LoopShare } from "./loop-share.ts";
import { RoomSocket } from "./room-socket.ts";
import type { RoomAddress, RoomsService } from "./service.ts";
import type { SyncTurns } from "./sync-turns.ts";

const ADDRESS = [
  { name: "namespace", required: true, description: "A namespace of `rooms` in the config" },
  { name: "id", required: true, description: "1 to 128 characters of A-Z a-z 0-9 _ - : ." },
];

/** Spec: Room endpoints. Credentials are not looked at: the first message of a connection carries the token. */
export function createRoomRoutes(
  http: Http,
  deps: {
    service: RoomsService;
    connections: Connections;
    sockets: SocketServer;
    share: LoopShare;
    syncs: SyncTurns;
    clock: Clock;
    ids: Ids;
    logger: Logger;
  },
): AnyElysia {
  const { service, connections, sockets } = deps;
  const addressOf = (query: Query): RoomAddress => {
    return service.address(query.get("namespace") ?? "", query.get("id") ?? "");
  };

  const open = (request: Request, address: RoomAddress, release: Release): Response => {
    const socket = new RoomSocket({ ...deps, address, id: deps.ids.uuid() });
    try {
      // Again: it may have waited for its place.
      connections.checkRoom();
      const response = sockets.upgrade(request, socket);
      connections.add(socket, release);
      return response;
    } catch (cause) {
      release();
      socket.goAway();
      throw cause;
    }
  };

  return new Elysia()
    .get(
      "/api/room",
      http.route(
        ({ request, query, address: clientAddress }) => {
          const address = addressOf(query());
          connections.checkRoom();
          return chain(address.namespace.pending.take(clientNetwork(clientAddress()), request.signal), (release) =>
            open(request, address, release),
          );
        },
        { public: true },
      ),
      operation({
        tag: "Rooms",
        summary: "Connect to a room by WebSocket",
        description: "The v2 protocol: JSON messages, of which `auth` is the first.",
        security: "open",
        query: ADDRESS,
        answers: { 101: { description: "The connection is a WebSocket now" } },
        errors: [400, 404, 429, 503],
      }),
    )
    .get(
      "/api/room/metadata",
      http.route(({ query }) => service.metadata(addressOf(query())), { public: true }),
      operation({
        tag: "Rooms",
        summary: "The metadata of a room",
        description: "What the room's own code has set with `room.setMetadata`.",
        security: "open",
        query: ADDRESS,
        answers: {
          200: {
            description: "The metadata; `{}` when none has been set",
            schema: Type.Record(Type.String(), Type.Unknown()),
          },
        },
        errors: [400, 404],
      }),
    );
}
