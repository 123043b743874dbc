import type { ReadCaller } from "./types.ts";

/** The server itself as a caller. Reads of its own code are not limited by a share. */
export const SERVER_CALLER: ReadCaller = { callerName: "server", signal: undefined };
