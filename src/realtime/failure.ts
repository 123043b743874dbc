import type { ClientMessage } from "./client-message.ts";
import type { ErrorCode } from "./encoding.ts";

/** Why an operation was not done. */
export interface Failure {
  code: ErrorCode;
  message: string;
}

export type Operation = Exclude<ClientMessage, { type: "auth" } | { type: "ping" }>;
export type OperationOf<T extends Operation["type"]> = Operation & { type: T };

export const failure = (code: ErrorCode, message: string): Failure => ({ code, message });
export const unknownChannel = (name: string): Failure => failure("INVALID_CHANNEL", `There is no channel "${name}"`);
export const denied = (code: "SUBSCRIBE_DENIED" | "ACCESS_DENIED"): Failure => failure(code, "Access denied");
