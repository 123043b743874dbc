/**
 * Frames of a link, on which two processes exchange what happens to the WebSockets that one of them holds for the other. Text frames are a
 * kind, the number of the socket, a space and the rest; a binary frame is the number, as 32 bits, and a binary message of that socket.
 */
export const NUMBER_BYTES = 4;
/** The greatest length of the part of a text frame before its rest. */
export const FRAME_HEAD_MAX = 12;

/** Kinds of frames to the process that holds the sockets. `publish`: to a topic, but for the socket of the number; 0: to all. */
export const TO_NEAR = {
  send: "s",
  subscribe: "j",
  unsubscribe: "l",
  publish: "p",
  close: "c",
  terminate: "t",
  ping: "g",
  /** Asks for what waits, as soon as everything before has been passed to the client. */
  ask: "q",
} as const;

/** Kinds of frames to the process that decides. */
export const TO_FAR = {
  opened: "o",
  message: "m",
  ping: "g",
  closed: "c",
  /** Bytes that wait for the client: as an answer to `ask`, and by itself. */
  answered: "a",
  waits: "w",
} as const;

export interface Frame {
  kind: string;
  id: number;
  rest: string;
}

export const textFrame = (kind: string, id: number, rest = ""): string => `${kind}${id} ${rest}`;

export function readFrame(text: string): Frame {
  const end = text.indexOf(" ");
  return { kind: text.slice(0, 1), id: Number(text.slice(1, end)), rest: text.slice(end + 1) };
}

export function binaryFrame(id: number, message: Uint8Array): Buffer {
  const frame = Buffer.alloc(NUMBER_BYTES + message.byteLength);
  frame.writeUInt32LE(id);
  frame.set(message, NUMBER_BYTES);
  return frame;
}

/** Returns the rest of a frame that has a first word: a topic, a code. */
export function wordOf(rest: string): { word: string; more: string } {
  const end = rest.indexOf(" ");
  return end < 0 ? { word: rest, more: "" } : { word: rest.slice(0, end), more: rest.slice(end + 1) };
}
