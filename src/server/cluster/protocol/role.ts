import type { Appender } from "./appender.ts";

/** Part that a node plays in its group. */
export type Role =
  | { kind: "comparing"; isRead: boolean }
  | { kind: "joining" }
  | { kind: "following" }
  | { kind: "taking"; epoch: number; position: number }
  | { kind: "owning"; appender: Appender }
  | { kind: "stopped" };
