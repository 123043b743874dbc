import type { Part } from "../values/part.ts";

/** What a route says about its WebSockets. */
export interface SocketOptions {
  message?(socket: unknown, message: unknown): unknown;
  parse?: MessageParser | readonly MessageParser[];
  error?: readonly ((context: object) => unknown)[];
  /** Judges messages; null: it has no schema. */
  part: Part | null;
}

type MessageParser = (socket: unknown, message: unknown) => unknown;
