import { Type } from "typebox";
import { forbidden, notFound } from "../../../../kernel/errors.ts";
import type { Principal } from "../../../access/principal.ts";
import { requireAnyServiceKey, requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { ROOM_ID_LENGTH_MAX } from "../limits.ts";
import type { RoomsService } from "../service.ts";
import type { RecordChange } from "../types.ts";
import { RoomList, type RoomsAdministration, RoomView } from "../administration.ts";

/** Rooms in one list. */
const LISTED_ROOMS_DEFAULT = 100;
const LISTED_ROOMS_MAX = 500;
/** Characters of the id of a user. */
const USER_ID_LENGTH_MAX = 128;

const ADDRESS = { namespace: "A namespace of `rooms` in the config", id: "The id of a room" };

const TAG = "Rooms";

interface EndpointDeps {
  service: Pick<RoomsService, "address" | "namespaces">;
  administration: RoomsAdministration;
  audit: RecordChange;
}

/** Returns the endpoints of administrators: they see live rooms, kick players and close rooms. */
export const roomAdministrationEndpoints = (deps: EndpointDeps): readonly Endpoint[] => [
  ...readingEndpoints(deps),
  ...changingEndpoints(deps),
];

function readingEndpoints({ service, administration }: EndpointDeps): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/admin/rooms",
    {
      tag: TAG,
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
      tag: TAG,
      summary: "Get a room: its players, states, metadata and timers",
      description: "Also what clients never see. A room that is not in memory is shown as it was saved last.",
      caller: "serviceKey",
      place: "room",
      path: ADDRESS,
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

function changingEndpoints({ service, administration, audit }: EndpointDeps): readonly Endpoint[] {
  const kick = endpoint(
    "POST /api/admin/rooms/:namespace/:id/kick",
    {
      tag: TAG,
      summary: "Kick a player",
      description: "The player leaves, as by `room.kick`, with the reason `kicked`, and may join again.",
      caller: "serviceKey",
      place: "room",
      path: ADDRESS,
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
      tag: TAG,
      summary: "Close a live room",
      description: "Kicks every player. The room is saved and leaves memory, as after its last player has left.",
      caller: "serviceKey",
      place: "room",
      path: ADDRESS,
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

/** Returns the namespaces whose rooms a key may see. Errors: 401 without a key, 403 where it may see none. */
function readableOf(principal: Principal, namespaces: readonly string[]): readonly string[] {
  requireAnyServiceKey(principal);
  if (principal.kind !== "serviceKey") return namespaces;
  const { scopes } = principal;
  const readable = namespaces.filter((name) => scopes.allows("rooms", "*", name, "read"));
  if (readable.length === 0 && !scopes.allows("rooms", "*", "*", "read")) throw forbidden();
  return readable;
}
