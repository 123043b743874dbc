import { Type } from "typebox";
import { AnyObject } from "../../../kernel/schema/types.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import type { AreaSockets } from "../../sockets/area-sockets.ts";
import type { SyncTurns } from "./connection/outbox.ts";
import { Visitor } from "./connection/visitor.ts";
import { connectionLimits, ROOM_ID_LENGTH_MAX } from "./limits.ts";
import type { LoopShare } from "./room/room-meter.ts";
import type { RoomsService } from "./service.ts";

const ADDRESS = {
  namespace: Type.String({ minLength: 1, description: "A namespace of `rooms` in the config" }),
  id: Type.String({
    minLength: 1,
    maxLength: ROOM_ID_LENGTH_MAX,
    pattern: "^[A-Za-z0-9_\\-:.]+$",
    description: "Characters of A-Z a-z 0-9 _ - : .",
  }),
};

export function roomEndpoints(deps: {
  service: RoomsService;
  connections: AreaSockets<Visitor>;
  share: LoopShare;
  syncs: SyncTurns;
}): readonly Endpoint[] {
  const { service, connections } = deps;
  const connect = endpoint(
    "GET /api/room",
    {
      tag: "Rooms",
      summary: "Connect to a room",
      description: "A WebSocket with JSON messages, the v2 protocol. The first message is `auth`.",
      caller: "open",
      place: "room",
      query: ADDRESS,
      answers: { 101: { description: "The connection is a WebSocket" } },
      errors: [400, 404, 429, 503],
    },
    (context) => {
      const address = service.address(context.query());
      const { pending, limits } = address.namespace;
      const state = (): Visitor => new Visitor(address, deps);
      return connections.open(context, { limits: connectionLimits(limits), places: pending, state });
    },
  );
  const metadata = endpoint(
    "GET /api/room/metadata",
    {
      tag: "Rooms",
      summary: "Get the metadata of a room",
      description: "What the room's handlers have set with `room.setMetadata`.",
      caller: "open",
      place: "room",
      query: ADDRESS,
      answers: { 200: { description: "The metadata; `{}` when none is set", schema: AnyObject } },
      errors: [400, 404],
    },
    ({ query }) => service.metadata(service.address(query())),
  );
  return [connect, metadata];
}
