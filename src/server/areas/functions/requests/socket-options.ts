import type { Part } from "../values/part.ts";

/** The WebSocket options of a route. */
export interface SocketOptions {
  message?(socket: unknown, message: unknown): unknown;
  parse?: MessageParser | readonly MessageParser[];
  error?: readonly ((context: object) => unknown)[];
  /** Validates messages; null: there is no schema. */
  part: Part | null;
}

type MessageParser = (socket: unknown, message: unknown) => unknown;
