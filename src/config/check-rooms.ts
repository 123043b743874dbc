import { handlerNameProblem, nameProblem } from "./names.ts";
import { booleanOrFunction, duration, func, members, named, whole } from "./shape.ts";

const MIB_BYTES = 1024 * 1024;
/** Spec: Limits / Rooms. */
export const ROOM_STATE_MAX_BYTES = 10 * MIB_BYTES;

/** `rooms`. Decisions 9. */
export const checkRooms = named(
  nameProblem,
  members({
    maxPlayers: whole({ min: 1 }),
    maxStateSize: whole({ min: 1, max: ROOM_STATE_MAX_BYTES, unit: "bytes" }),
    messageRate: whole({ min: 1, unit: "messages a second" }),
    authTimeout: duration("milliseconds"),
    pendingPerAddress: whole({ min: 1, unit: "connections" }),
    reconnectTimeout: duration("milliseconds", { min: 0 }),
    saveInterval: duration("milliseconds"),
    stateTtl: duration("milliseconds"),
    idleTimeout: duration("milliseconds"),
    access: members({ join: booleanOrFunction, action: func }),
    onCreate: func,
    onJoin: func,
    onLeave: func,
    onDestroy: func,
    actions: named(handlerNameProblem, func, { isCaseIgnored: false }),
    timers: named(handlerNameProblem, func, { isCaseIgnored: false }),
  }),
);
