import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { together } from "../listeners.ts";
import type { ServerMessage, Socket } from "../socket/types.ts";
import type { RoomPlayer } from "./types.ts";

const objectOr = (value: JsonValue | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};

function withPath(state: JsonObject, keys: readonly string[], value: JsonValue): JsonObject {
  const [key = "", ...rest] = keys;
  const { [key]: present, ...others } = state;
  if (rest.length > 0) return { ...state, [key]: withPath(objectOr(present), rest, value) };
  return value === null ? others : { ...state, [key]: value };
}

/** Applies a delta of dot-paths to new values, in which null deletes. Untouched parts stay the same objects. */
const followDelta = (state: JsonObject, delta: JsonObject): JsonObject =>
  Object.entries(delta).reduce((next, [path, value]) => withPath(next, path.split("."), value), state);

/** Replica of the part of a room's state that this client receives. */
interface Replica {
  readonly shared: JsonObject;
  readonly mine: JsonObject;
  readonly players: readonly RoomPlayer[];
  stop(): void;
}

/** Creates a replica that follows the messages of a room. `resync` requests the whole state. */
export function createReplica(
  socket: Socket,
  { onSync, onChange, resync }: { onSync(): void; onChange(): void; resync(): void },
): Replica {
  const versions = { shared: 0, player: 0 };
  let shared: JsonObject = {};
  let mine: JsonObject = {};
  let players: readonly RoomPlayer[] = [];
  /** Returns whether the delta is the next version. */
  const isNext = (name: "shared" | "player", { version }: ServerMessage) => {
    const isFollowing = version === versions[name] + 1;
    if (isFollowing) versions[name]++;
    // The server sends every delta in order. A gap is a fault, which the whole state repairs.
    else if (Number(version) > versions[name]) resync();
    return isFollowing;
  };
  // The protocol declares the form of the messages.
  const stop = together([
    socket.on("sync", (message) => {
      shared = message["sharedState"] as JsonObject;
      mine = message["playerState"] as JsonObject;
      versions.shared = Number(message["sharedVersion"]);
      versions.player = Number(message["playerVersion"]);
      onSync();
    }),
    socket.on("shared_delta", (message) => {
      if (!isNext("shared", message)) return;
      shared = followDelta(shared, message["delta"] as JsonObject);
      onChange();
    }),
    socket.on("player_delta", (message) => {
      if (!isNext("player", message)) return;
      mine = followDelta(mine, message["delta"] as JsonObject);
      onChange();
    }),
    socket.on("players", (message) => {
      players = message["players"] as RoomPlayer[];
      onChange();
    }),
  ]);
  return {
    get shared() {
      return shared;
    },
    get mine() {
      return mine;
    },
    get players() {
      return players;
    },
    stop,
  };
}
