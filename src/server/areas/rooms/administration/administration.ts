import type { Clock } from "../../../../kernel/clock.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { Largest } from "../../../../kernel/observing/largest.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type { RoomStore } from "../lifecycle/store.ts";
import { KICKS_PER_TURN, NEVER_EXPIRED, PLAYERS_LISTED_MAX, ROOMS_LOOKED_PER_TURN, VIEW_MAX_BYTES } from "../limits.ts";
import type { LiveRoom } from "../room/room.ts";
import type { RoomAddress, RoomsService } from "../service.ts";
import type { RoomState } from "../state/room-state.ts";
import { SYNCED, UNSYNCED } from "../state/state.ts";
import { type BytesLeft, fitting } from "./fitting.ts";

export interface ListedRoom {
  namespace: string;
  id: string;
  players: number;
  connections: number;
  /** false: it has hibernated behind its connections. */
  isInMemory: boolean;
  /** Bytes of its states; null while it hibernates. */
  stateBytes: number | null;
}

export interface RoomList {
  /** All rooms of these namespaces. */
  namespaces: { name: string; rooms: number; players: number }[];
  /** Those with the most players first. */
  rooms: ListedRoom[];
  /** Rooms that are wanted, listed or not. */
  total: number;
}

interface ViewedPlayer {
  userId: string;
  role: string;
  connections: number;
  state: JsonObject | null;
}

export interface RoomView {
  namespace: string;
  id: string;
  /** `live`: in memory. `hibernating`: with players, and not in memory. `saved`: in the file only. */
  status: "live" | "hibernating" | "saved";
  players: ViewedPlayer[];
  playerCount: number;
  metadata: JsonObject;
  /** null: too large while it is not in memory. */
  sharedState: JsonObject | null;
  sharedVersion: number;
  serverState: JsonObject | null;
  /** Bytes of the shared state and of those of players; null while it is not in memory. */
  stateBytes: number | null;
  timers: { name: string; dueAt: string }[];
  /** Parts of the states are left out. */
  isTruncated: boolean;
}

export interface RoomsAdministration {
  /** Live rooms of these namespaces whose id begins with `prefix`, the fullest first, at most `limit`. */
  list(wanted: { namespaces: ReadonlySet<string>; prefix: string; limit: number }): Promise<RoomList>;
  /** null: there is no such room, live or saved. */
  view(address: RoomAddress): RoomView | null;
  /** Whether the user was a player of a live room. */
  kick(address: RoomAddress, userId: string): boolean;
  /** Kicks everybody; how many they were. null: the room is not live. */
  close(address: RoomAddress): Promise<number | null>;
}

export function createRoomsAdministration(deps: {
  service: Pick<RoomsService, "all" | "live">;
  store: Pick<RoomStore, "look">;
  clock: Clock;
}): RoomsAdministration {
  const { service, store, clock } = deps;
  return {
    list: (wanted) => list(service.all(), wanted),
    view(address) {
      const { namespace, id } = address;
      const room = service.live(address);
      if (room?.state != null) return viewOf(room, room.state);
      const now = room === null || room.playerCount === 0 ? clock.now() : NEVER_EXPIRED;
      const saved = store.look(namespace.name, id, { now, maxBytes: VIEW_MAX_BYTES });
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
    },
    kick: (address, userId) => service.live(address)?.kick(userId) ?? false,
    async close(address) {
      const room = service.live(address);
      if (room === null) return null;
      const userIds = Array.from(room.members(), ({ player }) => player.userId);
      let kicked = 0;
      for (const [index, userId] of userIds.entries()) {
        if (room.kick(userId)) kicked++;
        if (index % KICKS_PER_TURN === KICKS_PER_TURN - 1) await nextTurn();
      }
      return kicked;
    },
  };
}

async function list(
  rooms: Iterable<LiveRoom>,
  { namespaces, prefix, limit }: Parameters<RoomsAdministration["list"]>[0],
): Promise<RoomList> {
  const counts = new Map(Array.from(namespaces, (name) => [name, { name, rooms: 0, players: 0 }]));
  const fullest = new Largest<LiveRoom>(limit);
  let total = 0;
  let looked = 0;
  for (const room of rooms) {
    if (++looked % ROOMS_LOOKED_PER_TURN === 0) await nextTurn();
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

const listed = (room: LiveRoom): ListedRoom => ({
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

/** At most PLAYERS_LISTED_MAX. */
function playersOf(room: LiveRoom, state: RoomState | null, left: BytesLeft): ViewedPlayer[] {
  const players: ViewedPlayer[] = [];
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
