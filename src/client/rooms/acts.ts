import type { JsonValue } from "../../kernel/json/json.ts";
import { lostError, socketError } from "../channels/errors.ts";
import type { ClientContext } from "../context.ts";
import { together } from "../listeners.ts";
import type { Socket } from "../socket/types.ts";
import { type PlatformError, statusError } from "../transport/errors.ts";
import { WAIT_MS, WAITING_MAX } from "./limits.ts";
import type { RoomStatus } from "./types.ts";

interface Pending {
  message: { readonly type: "send"; readonly [member: string]: unknown };
  isSent: boolean;
  settle(error: PlatformError | null, result?: JsonValue): void;
}

/** The actions of one room that are under way, in order. */
export function createActs({ runtime, transport }: ClientContext, socket: Socket, status: () => RoomStatus) {
  const pending = new Map<unknown, Pending>();
  const send = (act: Pending) => {
    act.isSent = true;
    socket.send(act.message);
  };
  const stopListening = together([
    socket.on("action_result", ({ requestId, result }) => pending.get(requestId)?.settle(null, result as JsonValue)),
    // What the action itself says, such as a `Refusal`.
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
          if (!act.isSent) act.settle(lostError("The room cannot be reached"));
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
    /** Sends what waits. */
    joined() {
      for (const act of [...pending.values()]) if (!act.isSent) send(act);
    },
    /** Whether those that were sent have run is not known. */
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
