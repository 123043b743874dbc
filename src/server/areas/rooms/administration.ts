import { type Static, Type } from "typebox";
import type { Clock } from "../../../kernel/clock.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import { Largest } from "../../../kernel/observing/largest.ts";
import { AnyObject, nullable } from "../../../kernel/schema/types.ts";
import { nextTurn, Scheduler } from "../../../kernel/time/scheduler.ts";
import type { RoomStore } from "./lifecycle/store.ts";
import { NEVER_EXPIRED, PLAYERS_LISTED_MAX, VIEW_MAX_BYTES } from "./limits.ts";
import type { LiveRoom } from "./room/room.ts";
import type { RoomsService } from "./service.ts";
import type { RoomState } from "./state/room-state.ts";
import { type StateKind, SYNCED, UNSYNCED, valueBytes } from "./state/state.ts";
import type { RoomAddress } from "./types.ts";

/** Rooms visited in one turn of the event loop. */
/** Players of a closed room removed in one turn of the event loop. */
const KICKS_PER_TURN = 100;

export const RoomList = Type.Object({
  namespaces: Type.Array(Type.Object({ name: Type.String(), rooms: Type.Integer(), players: Type.Integer() }), {
    description: "All live rooms of each namespace, and their players",
  }),
  rooms: Type.Array(
    Type.Object({
      namespace: Type.String(),
      id: Type.String(),
      players: Type.Integer(),
      connections: Type.Integer(),
      isInMemory: Type.Boolean({ description: "false: it has hibernated behind its connections" }),
      stateBytes: nullable(Type.Integer({ description: "Of the shared state and those of players" })),
    }),
    { description: "Those with the most players first" },
  ),
  total: Type.Integer({ description: "Rooms that `namespace` and `prefix` select, listed or not" }),
});

export type RoomList = Static<typeof RoomList>;

export const RoomView = Type.Object({
  namespace: Type.String(),
  id: Type.String(),
  status: Type.Enum(["live", "hibernating", "saved"], {
    description: "In memory; with players, and not in memory; in the file only, as it was saved last",
  }),
  players: Type.Array(
    Type.Object({
      userId: Type.String(),
      role: Type.String(),
      connections: Type.Integer({ description: "0: the place is kept for a reconnect" }),
      state: nullable(AnyObject),
    }),
    { description: "At most 1,000" },
  ),
  playerCount: Type.Integer(),
  metadata: AnyObject,
  sharedState: nullable(AnyObject),
  sharedVersion: Type.Integer(),
  serverState: nullable(AnyObject),
  stateBytes: nullable(Type.Integer()),
  timers: Type.Array(Type.Object({ name: Type.String(), dueAt: Type.String({ format: "date-time" }) })),
  isTruncated: Type.Boolean({ description: "The states have more than 256 KiB, and parts of them are left out" }),
});
export type RoomView = Static<typeof RoomView>;

/** View of live rooms for administrators, who can kick players and close rooms. */
export class RoomsAdministration {
  readonly #service: Pick<RoomsService, "all" | "live">;
  readonly #store: Pick<RoomStore, "look">;
  readonly #clock: Clock;
  readonly #scheduler = new Scheduler();

  constructor(deps: { service: Pick<RoomsService, "all" | "live">; store: Pick<RoomStore, "look">; clock: Clock }) {
    this.#service = deps.service;
    this.#store = deps.store;
    this.#clock = deps.clock;
  }

  /** Lists live rooms of these namespaces whose ids begin with `prefix`, the fullest first, at most `limit`. */
  async list({
    namespaces,
    prefix,
    limit,
  }: {
    namespaces: ReadonlySet<string>;
    prefix: string;
    limit: number;
  }): Promise<RoomList> {
    const counts = new Map(Array.from(namespaces, (name) => [name, { name, rooms: 0, players: 0 }]));
    const fullest = new Largest<LiveRoom>(limit);
    const pace = this.#scheduler.pace();
    let total = 0;
    for (const room of this.#service.all()) {
      if (pace.isDue()) await pace.next();
      const count = counts.get(room.namespace.name);
      if (count === undefined) continue;
      count.rooms++;
      count.players += room.playerCount;
      if (!room.id.startsWith(prefix)) continue;
      total++;
      fullest.add(room, room.playerCount);
    }
    return { namespaces: [...counts.values()], rooms: fullest.sorted().map(listed), total };
  }

  /** Returns a room, live or saved; null when there is none. */
  view(address: RoomAddress): RoomView | null {
    const { namespace, id } = address;
    const room = this.#service.live(address);
    if (room?.state != null) return viewOf(room, room.state);
    const now = room === null || room.playerCount === 0 ? this.#clock.now() : NEVER_EXPIRED;
    const saved = this.#store.look(namespace.name, id, { now, maxBytes: VIEW_MAX_BYTES });
    if (saved === null) return null;
    const { shared, server, timers, ...rest } = saved;
    return {
      namespace: namespace.name,
      id,
      status: room === null ? "saved" : "hibernating",
      players: room === null ? [] : playersOf(room, null, { bytes: 0, isCut: false }),
      playerCount: room?.playerCount ?? 0,
      ...rest,
      sharedState: shared,
      serverState: server,
      stateBytes: null,
      timers: timersOf(Object.entries(timers)),
      isTruncated: shared === null || server === null,
    };
  }

  /** Kicks a user. Returns whether the user was a player of a live room. */
  kick(address: RoomAddress, userId: string): boolean {
    return this.#service.live(address)?.kick(userId) ?? false;
  }

  /** Kicks everybody and returns the number of players; null when the room is not live. */
  async close(address: RoomAddress): Promise<number | null> {
    const room = this.#service.live(address);
    if (room === null) return null;
    const userIds = Array.from(room.members(), ({ player }) => player.userId);
    let kicked = 0;
    for (const [index, userId] of userIds.entries()) {
      if (room.kick(userId)) kicked++;
      if (index % KICKS_PER_TURN === KICKS_PER_TURN - 1) await nextTurn();
    }
    return kicked;
  }
}

const listed = (room: LiveRoom): RoomList["rooms"][number] => ({
  namespace: room.namespace.name,
  id: room.id,
  players: room.playerCount,
  connections: connectionsOf(room),
  isInMemory: room.isInMemory,
  stateBytes: room.state?.bytes ?? null,
});

function connectionsOf(room: LiveRoom): number {
  let count = 0;
  for (const { connections } of room.members()) count += connections.size;
  return count;
}

function viewOf(room: LiveRoom, state: RoomState): RoomView {
  const left: BytesLeft = { bytes: VIEW_MAX_BYTES, isCut: false };
  const sharedState = fitting(state.shared, SYNCED, left);
  const players = playersOf(room, state, left);
  const serverState = fitting(state.server, UNSYNCED, left);
  return {
    namespace: room.namespace.name,
    id: room.id,
    status: "live",
    players,
    playerCount: room.playerCount,
    metadata: state.metadata,
    sharedState,
    sharedVersion: state.sharedVersion,
    serverState,
    stateBytes: state.bytes,
    timers: timersOf(state.timers),
    isTruncated: left.isCut,
  };
}

/** Returns the players of a room, at most PLAYERS_LISTED_MAX. */
function playersOf(room: LiveRoom, state: RoomState | null, left: BytesLeft): RoomView["players"] {
  const players: RoomView["players"] = [];
  for (const { player, connections } of room.members()) {
    if (players.length === PLAYERS_LISTED_MAX) break;
    const { userId, role } = player;
    const own = state === null ? null : fitting(state.player(userId), SYNCED, left);
    players.push({ userId, role, connections: connections.size, state: own });
  }
  return players;
}

const timersOf = (timers: Iterable<readonly [string, { dueAt: number }]>): RoomView["timers"] =>
  Array.from(timers, ([name, { dueAt }]) => ({ name, dueAt: new Date(dueAt).toISOString() }));

/** Bytes of a key beside its characters: quotes, colon and comma. */
const KEY_BYTES = 4;

/** Budget of a response in bytes, and whether anything had to be left out. */
interface BytesLeft {
  bytes: number;
  isCut: boolean;
}

/**
 * Returns the part of an adopted state that fits: members in order, and the own members of one that is too large. Arrays end
 * where they are cut. Takes time in proportion to the result, however large the state.
 */
function fitting(state: JsonObject, kind: StateKind, left: BytesLeft): JsonObject {
  const part = partOf(state, kind, left);
  return isJsonObject(part) ? part : {};
}

/** Returns the part of a value that fits; undefined when none does. */
function partOf(value: JsonValue, kind: StateKind, left: BytesLeft): JsonValue | undefined {
  const bytes = valueBytes(value, kind);
  if (bytes <= left.bytes) {
    left.bytes -= bytes;
    return value;
  }
  left.isCut = true;
  if (typeof value !== "object" || value === null) return undefined;
  return Array.isArray(value) ? itemsOf(value, kind.inArrays ?? kind, left) : membersOf(value, kind, left);
}

function membersOf(object: JsonObject, kind: StateKind, left: BytesLeft): JsonObject {
  const members: Record<string, JsonValue> = {};
  for (const key of Object.keys(object)) {
    left.bytes -= key.length + KEY_BYTES;
    if (left.bytes <= 0) break;
    const part = partOf(object[key] ?? null, kind, left);
    if (part !== undefined) members[key] = part;
  }
  return members;
}

function itemsOf(items: readonly JsonValue[], kind: StateKind, left: BytesLeft): JsonValue[] {
  const parts: JsonValue[] = [];
  for (const item of items) {
    const isWhole = valueBytes(item, kind) <= left.bytes;
    const part = partOf(item, kind, left);
    if (part !== undefined) parts.push(part);
    if (!isWhole || left.bytes <= 0) break;
  }
  return parts;
}
