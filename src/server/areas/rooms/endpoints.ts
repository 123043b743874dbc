import { Type } from "typebox";
import { forbidden, notFound } from "../../../kernel/errors.ts";
import { AnyObject } from "../../../kernel/schema/types.ts";
import type { TurnBudget } from "../../../kernel/time/turn-budget.ts";
import type { Principal } from "../../access/principal.ts";
import { requireAnyServiceKey, requireServiceKey } from "../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { OK } from "../../http/reply.ts";
import type { AreaSockets } from "../../sockets/area-sockets.ts";
import { RoomList, type RoomsAdministration, RoomView } from "./administration.ts";
import type { SyncTurns } from "./connection/outbox.ts";
import { Visitor } from "./connection/visitor.ts";
import { connectionLimits, ROOM_ID_LENGTH_MAX } from "./limits.ts";
import type { RoomsService } from "./service.ts";
import type { RecordChange } from "./types.ts";

/** Default number of rooms in a list. */
const LISTED_ROOMS_DEFAULT = 100;
const LISTED_ROOMS_MAX = 500;
/** Characters of the id of a user. */
const USER_ID_LENGTH_MAX = 128;

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
  turn: TurnBudget;
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

const PATH = { namespace: "A namespace of `rooms` in the config", id: "The id of a room" };

interface AdministrationDeps {
  service: Pick<RoomsService, "address" | "namespaces">;
  administration: RoomsAdministration;
  audit: RecordChange;
}

/** Returns the endpoints of administrators, who view live rooms, kick players and close rooms. */
export const roomAdministrationEndpoints = (deps: AdministrationDeps): readonly Endpoint[] => [
  ...readingEndpoints(deps),
  ...changingEndpoints(deps),
];

function readingEndpoints({ service, administration }: AdministrationDeps): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/admin/rooms",
    {
      tag: "Rooms",
      summary: "List the live rooms",
      description: "The fullest first. A key sees the namespaces that a scope `rooms:*:NAMESPACE:read` names.",
      caller: "serviceKey",
      place: "room",
      query: {
        namespace: Type.Optional(Type.String({ minLength: 1 })),
        prefix: Type.Optional(Type.String({ maxLength: ROOM_ID_LENGTH_MAX, description: "The beginning of the id" })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LISTED_ROOMS_MAX, default: LISTED_ROOMS_DEFAULT })),
      },
      answers: { 200: RoomList },
      errors: [400, 404],
    },
    ({ principal, query }) => {
      const readable = readableOf(principal, service.namespaces);
      const { namespace, prefix = "", limit = LISTED_ROOMS_DEFAULT } = query();
      if (namespace !== undefined) {
        requireServiceKey(principal, ["rooms", "*", namespace, "read"]);
        service.address({ namespace, id: "" });
      }
      const namespaces = new Set(namespace === undefined ? readable : [namespace]);
      return administration.list({ namespaces, prefix, limit });
    },
  );
  const view = endpoint(
    "GET /api/admin/rooms/:namespace/:id",
    {
      tag: "Rooms",
      summary: "Get a room: its players, states, metadata and timers",
      description: "Also what clients never see. A room that is not in memory is shown as it was saved last.",
      caller: "serviceKey",
      place: "room",
      path: PATH,
      answers: { 200: RoomView },
      errors: [404],
    },
    ({ principal, params, query }) => {
      requireServiceKey(principal, ["rooms", "*", params.namespace, "read"]);
      query();
      const room = administration.view(service.address(params));
      if (room === null) throw notFound(`There is no room "${params.id}"`);
      return room;
    },
  );
  return [list, view];
}

function changingEndpoints({ service, administration, audit }: AdministrationDeps): readonly Endpoint[] {
  const kick = endpoint(
    "POST /api/admin/rooms/:namespace/:id/kick",
    {
      tag: "Rooms",
      summary: "Kick a player",
      description: "The player leaves, as by `room.kick`, with the reason `kicked`, and may join again.",
      caller: "serviceKey",
      place: "room",
      path: PATH,
      body: Type.Object({ userId: Type.String({ minLength: 1, maxLength: USER_ID_LENGTH_MAX }) }),
      answers: { 200: Type.Object({ ok: Type.Literal(true) }) },
      errors: [404],
    },
    async ({ principal, params: { namespace, id }, body }) => {
      requireServiceKey(principal, ["rooms", "*", namespace, "write"]);
      const { userId } = await body();
      if (!administration.kick(service.address({ namespace, id }), userId)) {
        throw notFound(`There is no player "${userId}" in the room "${id}"`);
      }
      await audit({ action: "room.kick", target: `rooms/${namespace}/${id}`, after: { userId } });
      return OK;
    },
  );
  const close = endpoint(
    "POST /api/admin/rooms/:namespace/:id/close",
    {
      tag: "Rooms",
      summary: "Close a live room",
      description: "Kicks every player. The room is saved and leaves memory, as after its last player has left.",
      caller: "serviceKey",
      place: "room",
      path: PATH,
      answers: { 200: Type.Object({ kicked: Type.Integer({ description: "Players" }) }) },
      errors: [404],
    },
    async ({ principal, params: { namespace, id }, query }) => {
      requireServiceKey(principal, ["rooms", "*", namespace, "write"]);
      query();
      const kicked = await administration.close(service.address({ namespace, id }));
      if (kicked === null) throw notFound(`There is no live room "${id}"`);
      await audit({ action: "room.close", target: `rooms/${namespace}/${id}`, after: { kicked } });
      return { kicked };
    },
  );
  return [kick, close];
}

/** Returns the namespaces whose rooms a key may see. Errors: 401 without a key, 403 when it may see none. */
function readableOf(principal: Principal, namespaces: readonly string[]): readonly string[] {
  requireAnyServiceKey(principal);
  if (principal.kind !== "serviceKey") return namespaces;
  const { scopes } = principal;
  const readable = namespaces.filter((name) => scopes.allows("rooms", "*", name, "read"));
  if (readable.length === 0 && !scopes.allows("rooms", "*", "*", "read")) throw forbidden();
  return readable;
}
