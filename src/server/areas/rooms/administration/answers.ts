import { Type } from "typebox";
import { AnyObject, nullable } from "../../../../kernel/schema/types.ts";

export const RoomList = Type.Object({
  namespaces: Type.Array(Type.Object({ name: Type.String(), rooms: Type.Integer(), players: Type.Integer() }), {
    description: "All live rooms of each namespace, and their players",
  }),
  rooms: Type.Array(
    Type.Object({
      namespace: Type.String(),
      id: Type.String(),
      players: Type.Integer(),
      connections: Type.Integer(),
      isInMemory: Type.Boolean({ description: "false: it has hibernated behind its connections" }),
      stateBytes: nullable(Type.Integer({ description: "Of the shared state and those of players" })),
    }),
    { description: "Those with the most players first" },
  ),
  total: Type.Integer({ description: "Rooms that `namespace` and `prefix` select, listed or not" }),
});

export const RoomView = Type.Object({
  namespace: Type.String(),
  id: Type.String(),
  status: Type.Enum(["live", "hibernating", "saved"], {
    description: "In memory; with players, and not in memory; in the file only, as it was saved last",
  }),
  players: Type.Array(
    Type.Object({
      userId: Type.String(),
      role: Type.String(),
      connections: Type.Integer({ description: "0: the place is kept for a reconnect" }),
      state: nullable(AnyObject),
    }),
    { description: "At most 1,000" },
  ),
  playerCount: Type.Integer(),
  metadata: AnyObject,
  sharedState: nullable(AnyObject),
  sharedVersion: Type.Integer(),
  serverState: nullable(AnyObject),
  stateBytes: nullable(Type.Integer()),
  timers: Type.Array(Type.Object({ name: Type.String(), dueAt: Type.String({ format: "date-time" }) })),
  isTruncated: Type.Boolean({ description: "The states have more than 256 KiB, and parts of them are left out" }),
});
