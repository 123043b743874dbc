import { handlerNameProblem, nameProblem } from "./names.ts";
import { booleanOrFunction, func, members, named, positive, whole } from "./shape.ts";

const MIB_BYTES = 1024 * 1024;
/** Spec: Limits / Rooms. */
export const ROOM_STATE_MAX_BYTES = 10 * MIB_BYTES;

/** `rooms`. Decisions 9. */
export const checkRooms = named(
  nameProblem,
  members({
    maxPlayers: whole({ min: 1 }),
    maxStateSize: whole({ min: 1, max: ROOM_STATE_MAX_BYTES, unit: "bytes" }),
    messageRate: positive("messages a second"),
    authTimeout: positive("milliseconds"),
    reconnectTimeout: whole({ min: 0, unit: "milliseconds" }),
    saveInterval: positive("milliseconds"),
    stateTtl: positive("milliseconds"),
    idleTimeout: positive("milliseconds"),
    access: members({ join: booleanOrFunction, action: func }),
    onCreate: func,
    onJoin: func,
    onLeave: func,
    onDestroy: func,
    actions: named(handlerNameProblem, func, { isCaseIgnored: false }),
    timers: named(handlerNameProblem, func, { isCaseIgnored: false }),
  }),
);
