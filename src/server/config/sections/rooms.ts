import { type Static, Type } from "typebox";
import type { JsonValue } from "../../../kernel/json/json.ts";
import type { MaybePromise, OrNothing } from "../../../kernel/maybe-promise.ts";
import type { RuleContext } from "../context.ts";
import type { Auth } from "../identity.ts";
import { ROOM_STATE_MAX_BYTES } from "../limits.ts";
import { handlerNameProblem } from "../shape/names.ts";
import { func, milliseconds, named, rule, whole } from "../shape/schema.ts";
import type { LeaveReason, Player, Room } from "./room-handlers.ts";

type JoinRule = (auth: Auth, roomId: string, context: RuleContext) => MaybePromise<boolean>;
type ActionRule = (
  auth: Auth,
  roomId: string,
  actionType: string,
  payload: JsonValue,
  context: RuleContext,
) => MaybePromise<boolean>;
type Action = (room: Room, player: Player, payload: JsonValue) => MaybePromise<OrNothing<JsonValue>>;
type Timer = (room: Room, data: JsonValue) => MaybePromise<void>;

const RoomShape = Type.Object({
  maxPlayers: Type.Optional(whole({ min: 1 })),
  /** The size of the state in bytes of JSON, shared and all player states together; 1 MiB by default, 10 MiB at most. */
  maxStateSize: Type.Optional(whole({ min: 1, max: ROOM_STATE_MAX_BYTES, unit: "bytes" })),
  /** Messages per second and connection; 10 by default. */
  messageRate: Type.Optional(whole({ min: 1, unit: "messages per second" })),
  /** Milliseconds; 5000 by default. */
  authTimeout: Type.Optional(milliseconds()),
  /** Unauthenticated connections per address; 5 by default. Further ones wait up to 2 s for a slot. */
  pendingPerAddress: Type.Optional(whole({ min: 1, unit: "connections" })),
  /** Milliseconds; 30000 by default. */
  reconnectTimeout: Type.Optional(milliseconds({ min: 0 })),
  /** Milliseconds; 60000 by default. */
  saveInterval: Type.Optional(milliseconds()),
  /** Milliseconds for which the state of an empty room is kept; 24 h by default. */
  stateTtl: Type.Optional(milliseconds()),
  /** Milliseconds; 300000 by default. */
  idleTimeout: Type.Optional(milliseconds()),
  access: Type.Optional(
    Type.Object({ join: Type.Optional(rule<JoinRule>()), action: Type.Optional(func<ActionRule>()) }),
  ),
  onCreate: Type.Optional(func<(room: Room) => MaybePromise<void>>()),
  onJoin: Type.Optional(func<(room: Room, player: Player) => MaybePromise<void>>()),
  onLeave: Type.Optional(func<(room: Room, player: Player, reason: LeaveReason) => MaybePromise<void>>()),
  onDestroy: Type.Optional(func<(room: Room) => MaybePromise<void>>()),
  actions: Type.Optional(named(func<Action>(), handlerNameProblem, { caseCounts: true })),
  timers: Type.Optional(named(func<Timer>(), handlerNameProblem, { caseCounts: true })),
});
export interface RoomConfig extends Static<typeof RoomShape> {}

export const Rooms = named(Type.Unsafe<RoomConfig>(RoomShape));
export interface RoomsConfig extends Static<typeof Rooms> {}
