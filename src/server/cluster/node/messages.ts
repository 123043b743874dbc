import type { Place } from "../protocol/statements.ts";

/** Message of an owner to a follower, on the connection that the follower holds open. */
export type OwnerMessage =
  /** The last place that is acknowledged, in this history. */
  | { kind: "place"; history: number; place: Place }
  /** Whether the client's connection of a forwarded request has to be held open while nothing is sent. */
  | { kind: "hold"; id: number; isHeld: boolean }
  /** Somebody waits until every node has told PostgreSQL that it shows this position. */
  | { kind: "confirm"; position: number }
  | { kind: "alive" }
  /** The owner takes no more requests: `to`, or another one where that is null. */
  | { kind: "leaving"; to: string | null };

/** The path by which a follower asks its owner for these messages. */
export const FOLLOW_PATH = "/follow";

/** The path by which a follower reports what it has answered itself. */
export const ANSWERS_PATH = "/answers";

export const textOf = (message: OwnerMessage): string => `${JSON.stringify(message)}\n`;
