import type { ServerWebSocket } from "bun";
import { CLOSE } from "./close-codes.ts";
import { BACKLOGS_LEFT_BYTES, BACKLOGS_MAX_BYTES, CLOSING_MAX_BYTES, CLOSING_MS } from "./limits.ts";

/** What a socket's handler does when too much waits for it: it ends the connection by `Backlogs.drop`. */
export interface Slow {
  tooSlow?(): void;
}
type AnySocket = Pick<ServerWebSocket<Slow>, "data" | "getBufferedAmount" | "close" | "terminate">;

/** What waits to be sent, of each socket and of all together. */
export interface Backlogs {
  /** Bytes that wait for this socket now. May end sockets, this one too, when all together are over their bound. */
  look(socket: AnySocket): number;
  /** Ends a socket that does not read: by 1013 behind what waits, or at once where there is no memory for that. */
  drop(socket: AnySocket): void;
  /** It has closed. */
  forget(socket: AnySocket): void;
}

/** `after`: a timer that does not keep the process from ending. */
export function createBacklogs(after: (delayMs: number, work: () => void) => void): Backlogs {
  /** Sockets for which something waited when they were looked at last. */
  const known = new Map<AnySocket, number>();
  let knownBytes = 0;
  let closingBytes = 0;
  let isShort = false;

  const note = (socket: AnySocket, bytes: number): void => {
    if (bytes === 0 && known.size === 0) return;
    const before = known.get(socket) ?? 0;
    if (bytes === before) return;
    knownBytes += bytes - before;
    if (bytes === 0) known.delete(socket);
    else known.set(socket, bytes);
  };
  const shed = (): void => {
    // Sockets drain without a word: what is known is an upper bound.
    for (const socket of [...known.keys()]) note(socket, socket.getBufferedAmount());
    if (knownBytes <= BACKLOGS_MAX_BYTES) return;
    isShort = true;
    for (const [socket] of [...known].sort(([, one], [, other]) => other - one)) {
      if (knownBytes <= BACKLOGS_LEFT_BYTES) break;
      if (socket.data.tooSlow === undefined) socket.terminate();
      else socket.data.tooSlow();
      note(socket, 0);
    }
    isShort = false;
  };

  return {
    look(socket) {
      const bytes = socket.getBufferedAmount();
      note(socket, bytes);
      if (knownBytes > BACKLOGS_MAX_BYTES && !isShort) shed();
      return bytes;
    },
    drop(socket) {
      const bytes = socket.getBufferedAmount();
      note(socket, 0);
      if (isShort || closingBytes + bytes > CLOSING_MAX_BYTES) {
        socket.terminate();
        return;
      }
      closingBytes += bytes;
      after(CLOSING_MS, () => {
        closingBytes -= bytes;
      });
      socket.close(CLOSE.tryLater, "Too slow");
    },
    forget: (socket) => note(socket, 0),
  };
}
