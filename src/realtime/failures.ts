import type { Failure as SocketFailure } from "../sockets/protocol.ts";
import type { ErrorCode } from "./server-messages.ts";

/** Why a message was refused. */
export type Failure = SocketFailure<ErrorCode>;

export const failure = (code: ErrorCode, message: string): Failure => ({ code, message });
export const unknownChannel = (name: string): Failure => failure("INVALID_CHANNEL", `There is no channel "${name}"`);
export const denied = (code: "SUBSCRIBE_DENIED" | "ACCESS_DENIED"): Failure => failure(code, "Access denied");
