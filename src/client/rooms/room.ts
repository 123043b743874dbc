import type { JsonValue } from "../../kernel/json/json.ts";
import { lostError, socketError } from "../channels/topic.ts";
import type { ClientContext } from "../context.ts";
import { createListeners, together } from "../listeners.ts";
import { SharedSocket } from "../socket/socket.ts";
import type { Socket } from "../socket/types.ts";
import { PlatformError, statusError } from "../transport/errors.ts";
import { createReplica } from "./replica.ts";
import type { Room, RoomStatus } from "./types.ts";

/** Timeout of an action's wait for the connection. */
const WAIT_MS = 10_000;
/** Bound of the actions that wait for the connection. */
const WAITING_MAX = 100;

interface Pending {
  message: { readonly type: "send"; readonly [member: string]: unknown };
  isSent: boolean;
  settle(error: PlatformError | null, result?: JsonValue): void;
}

/** Queue of the pending actions of one room, in order. */
function createActs({ runtime, transport }: ClientContext, socket: Socket, status: () => RoomStatus) {
  const pending = new Map<unknown, Pending>();
  const send = (act: Pending) => {
    act.isSent = true;
    socket.send(act.message);
  };
  const stopListening = together([
    socket.on("action_result", ({ requestId, result }) => pending.get(requestId)?.settle(null, result as JsonValue)),
    // The action threw this itself, for example as a `Refusal`.
    socket.on("action_error", ({ requestId, message }) =>
      pending.get(requestId)?.settle(statusError(400, String(message))),
    ),
    socket.on("error", (message) =>
      pending.get(message["requestId"])?.settle(socketError(message, transport.userId())),
    ),
  ]);
  return {
    act(type: string, payload: JsonValue | undefined): Promise<JsonValue> {
      return new Promise((resolve, reject) => {
        if (status() === "left") return reject(lostError("The room was left"));
        if (status() === "offline" && pending.size >= WAITING_MAX) return reject(lostError("Too many actions wait"));
        const requestId = runtime.uuid();
        const cancel = runtime.after(WAIT_MS, () => {
          if (!act.isSent) act.settle(lostError("The server cannot be reached"));
        });
        const act: Pending = {
          message: { type: "send", actionType: type, payload, requestId },
          isSent: false,
          settle(error, result = null) {
            if (!pending.delete(requestId)) return;
            cancel();
            if (error === null) resolve(result);
            else reject(error);
          },
        };
        pending.set(requestId, act);
        if (status() === "joined") send(act);
      });
    },
    /** Sends the waiting actions. */
    joined() {
      for (const act of [...pending.values()]) if (!act.isSent) send(act);
    },
    /** Rejects the sent actions, whose outcome is unknown. */
    lost() {
      for (const act of [...pending.values()]) {
        if (act.isSent) act.settle(lostError("The connection was lost before the answer"));
      }
    },
    end(error: PlatformError) {
      stopListening();
      for (const act of [...pending.values()]) act.settle(error);
    },
  };
}

/** Timeout of the first `sync`. */
const JOIN_TIMEOUT_MS = 15_000;

/** Errors of the room as a whole, rather than of one message. */
const ENDING = new Set<unknown>(["JOIN_DENIED", "ROOM_FULL", "SESSION_REVOKED", "AUTH_FAILED"]);

/** Joins a room. Resolves with its first state. */
export async function joinRoom(context: ClientContext, name: string, id: string): Promise<Room> {
  const connection = ownConnection(context, `/api/room?${new URLSearchParams({ namespace: name, id })}`);
  const { runtime, transport } = context;
  const ends: (() => void)[] = [];
  let room: Room | null = null;
  try {
    return await new Promise<Room>((resolve, reject) => {
      const onJoined = () => resolve(opened);
      const opened = openRoom(context, { id, ...connection, onJoined, onLeft: reject });
      room = opened;
      // Browsers do not tell pages why a WebSocket was refused. This request does.
      const explain = async () => {
        await transport.request("GET", "/api/room/metadata", { query: { namespace: name, id } }).catch((error) => {
          if (error instanceof PlatformError && isMistake(error)) reject(error);
        });
      };
      ends.push(
        connection.socket.subscribe((status) => {
          if (status === "waiting") void explain();
        }),
        runtime.after(JOIN_TIMEOUT_MS, () => reject(lostError("The server cannot be reached"))),
      );
    });
  } catch (error) {
    // The compiler does not see that the function above has run.
    (room as Room | null)?.leave();
    throw error;
  } finally {
    for (const end of ends) end();
  }
}

const isMistake = ({ status }: PlatformError): boolean => status === 400 || status === 404;

/** Opens a connection for one room. It ends with the room, or with the client. */
function ownConnection(context: ClientContext, path: string): { socket: Socket; close(): void } {
  const { add: onClose, tell: end } = createListeners();
  const socket = new SharedSocket({ ...context, onClose }, path);
  const forget = context.onClose(end);
  const close = () => {
    forget();
    end();
  };
  return { socket, close };
}

interface Opened {
  id: string;
  socket: Socket;
  /** Closes the connection. */
  close(): void;
  onJoined(): void;
  onLeft(error: PlatformError): void;
}

function openRoom(context: ClientContext, { id, socket, close, onJoined, onLeft }: Opened): Room {
  const { add: subscribe, tell } = createListeners();
  const messages = createListeners<[messageType: unknown, data: unknown]>();
  let status: RoomStatus = "offline";
  let error: PlatformError | null = null;
  const acts = createActs(context, socket, () => status);

  const join = () => socket.send({ type: "join", players: true });
  const onSync = () => {
    status = "joined";
    onJoined();
    acts.joined();
    tell();
  };
  const replica = createReplica(socket, { onSync, onChange: tell, resync: join });
  const left = (because: PlatformError | null) => {
    if (status === "left") return;
    status = "left";
    error = because;
    replica.stop();
    for (const end of ends) end();
    close();
    const reason = because ?? lostError("The room was left");
    acts.end(reason);
    onLeft(reason);
    tell();
  };
  const ends = [
    socket.on("message", ({ messageType, data }) => messages.tell(messageType, data)),
    socket.on("kicked", () => left(statusError(403, "You were removed"))),
    socket.on("error", (message) => {
      if (ENDING.has(message["code"])) left(socketError(message, context.transport.userId()));
    }),
    socket.subscribe((next) => {
      if (socket.error !== null) return left(socket.error);
      if (next === "closed") return left(null);
      if (next === "connected" || status !== "joined") return;
      status = "offline";
      acts.lost();
      tell();
    }),
    context.transport.onAuth(() => left(statusError(401, "Another user"))),
  ];
  ends.push(socket.hold(), socket.onConnected(join));

  return {
    id,
    get status() {
      return status;
    },
    get error() {
      return error;
    },
    get shared() {
      return replica.shared;
    },
    get mine() {
      return replica.mine;
    },
    get players() {
      return replica.players;
    },
    subscribe,
    on: (messageType, listener) =>
      messages.add((type, data) => {
        // The type of the data is the caller's.
        if (type === messageType) listener(data as never);
      }),
    act: (type, ...[payload]) => acts.act(type, payload as JsonValue | undefined) as Promise<never>,
    leave: () => left(null),
  };
}
