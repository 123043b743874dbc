import { SECOND_MS } from "../../kernel/duration.ts";

/** Whether another try may succeed. Decisions 11. */
export const isBusy = (status: number): boolean => status === 429 || status >= 500;

/** What Bun and the system say of a connection that did not come about, or broke off before the answer. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  ...["ConnectionRefused", "ConnectionClosed", "ConnectionReset", "FailedToOpenSocket", "Timeout"],
  ...["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "ENETDOWN"],
  // DNS that does not answer; a name that does not exist is ENOTFOUND.
  ...["EAI_AGAIN", "ETIMEOUT", "ESERVFAIL"],
]);

/** Whether this was thrown because the service cannot be reached now; not: because it is refused, or unknown. */
export const isUnreachable = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && UNREACHABLE.has(String(cause.code));

/** `Retry-After` in milliseconds from now: seconds, or a date; null when absent or neither. */
export function retryAfterMs(headers: Headers, nowMs: number): number | null {
  const value = headers.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(value)) return Number(value) * SECOND_MS;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
