import type { ServerMessage } from "../socket/types.ts";
import { deniedError, localError, type PlatformError, statusError } from "../transport/errors.ts";

/** The statuses that HTTP would answer with, by what the code of a message contains. */
const STATUSES = [
  [/^AUTH_FAILED|AUTHENTICATED$|REVOKED$/, 401],
  [/DENIED$/, 403],
  [/^NO_/, 404],
  [/FULL$|JOINED$|^TOO_MANY/, 409],
  [/TOO_LARGE$/, 413],
  [/LIMITED$/, 429],
  [/INTERNAL/, 500],
] as const;

/** The error that a message of a WebSocket describes, to this user; null: to nobody. */
export function socketError({ code, message }: ServerMessage, userId: string | null): PlatformError {
  const [, status = 400] = STATUSES.find(([known]) => known.test(String(code))) ?? [];
  return status === 403 && userId === null ? deniedError(null) : statusError(status, String(message));
}

export const lostError = (message: string): PlatformError => localError("network", message);
