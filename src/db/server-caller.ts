import type { ReadCaller } from "./types.ts";

/** The server itself, which has no share: what its own code asks for is its operator's business. */
export const SERVER_CALLER: ReadCaller = { callerName: "server", signal: undefined };
