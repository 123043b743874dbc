import type { ServerMessage } from "../socket/types.ts";
import { codeOf, PlatformError } from "../transport/errors.ts";

/** The statuses that HTTP would answer with. */
const STATUSES: Readonly<Record<string, number>> = {
  AUTH_FAILED: 401,
  NOT_AUTHENTICATED: 401,
  SESSION_REVOKED: 401,
  ACCESS_DENIED: 403,
  SUBSCRIBE_DENIED: 403,
  JOIN_DENIED: 403,
  NO_HANDLER: 404,
  CHANNEL_FULL: 409,
  NOT_JOINED: 409,
  ROOM_FULL: 409,
  TOO_MANY_SUBSCRIPTIONS: 409,
  TOO_MANY_TRACKED: 409,
  MESSAGE_TOO_LARGE: 413,
  STATE_TOO_LARGE: 413,
  RATE_LIMITED: 429,
  INTERNAL: 500,
};

/** The error that a message of a WebSocket describes. */
export function socketError({ code, message }: ServerMessage): PlatformError {
  const status = STATUSES[String(code)] ?? 400;
  return new PlatformError({ status, code: codeOf(status), message: String(message) });
}

export const lostError = (message: string): PlatformError => new PlatformError({ status: 0, code: "network", message });
