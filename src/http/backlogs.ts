import type { ServerWebSocket } from "bun";

/**
 * What waits to be sent to all sockets together. Past it those with the most are cut off: many clients that do not read
 * must not take the memory of the server, although each of them is below the bound of its own.
 */
const BACKLOGS_MAX_BYTES = 192 * 1024 * 1024;
/** Sockets are cut off until this is left, so that the next message does not begin it again. */
const BACKLOGS_LEFT_BYTES = (BACKLOGS_MAX_BYTES / 4) * 3;
/**
 * What may wait for sockets that are closed already. A close frame stands behind what waits, and Bun keeps both until the
 * client has read them or some seconds are over.
 */
const CLOSING_MAX_BYTES = 64 * 1024 * 1024;
/** How long Bun keeps them, measured: 17 s. */
const CLOSING_MS = 20_000;
const TRY_LATER = 1013;

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
      socket.close(TRY_LATER, "Too slow");
    },
    forget: (socket) => note(socket, 0),
  };
}
