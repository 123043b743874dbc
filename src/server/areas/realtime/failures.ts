import type { Failure as SocketFailure } from "../../sockets/protocol.ts";
import type { ErrorCode } from "./messages.ts";

/** Why a message was refused. */
export type Failure = SocketFailure<ErrorCode>;

export const failure = (code: ErrorCode, message: string): Failure => ({ code, message });

const CHANNELS =
  "realtime:NAMESPACE:TABLE, realtime:NAMESPACE:INSTANCE:TABLE where it has instances, presence:NAME or broadcast:NAME";

export const unknownChannel = (name: string): Failure =>
  failure("INVALID_CHANNEL", `There is no channel "${name}": expected ${CHANNELS}`);

/** Of a channel that the message is not for, or of none. */
export const otherChannel = (name: string, expected: "presence" | "broadcast"): Failure =>
  failure("INVALID_CHANNEL", `"${name}" is no channel for this: expected ${expected}:NAME`);

export const denied = (code: "SUBSCRIBE_DENIED" | "ACCESS_DENIED"): Failure => failure(code, "Access denied");
