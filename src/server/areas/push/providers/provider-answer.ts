import { codeOf } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Provider } from "../message.ts";

/** Whether another attempt may succeed after an answer with this status. */
export const isBusy = (status: number): boolean => status === 429 || status >= 500;

/** Error codes of Bun and the system for a connection that could not be opened, or was closed before the answer. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  "ConnectionRefused",
  "ConnectionClosed",
  "ConnectionReset",
  "FailedToOpenSocket",
  "Timeout",
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  // The name server did not answer. ENOTFOUND, for a name that does not exist, is not listed.
  "EAI_AGAIN",
  "ETIMEOUT",
  "ESERVFAIL",
]);

/** Whether a call failed because the service could not be reached. */
export const isUnreachable = (cause: unknown): boolean => UNREACHABLE.has(codeOf(cause));

/** Returns `Retry-After`, in seconds or as a date, as milliseconds from now; null if absent or invalid. */
export function retryAfterMs(headers: Headers, nowMs: number): number | null {
  const value = headers.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(value)) return Number(value) * SECOND_MS;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}

const NOTE = "Not sent: this server runs as a drill";

/** Creates a provider that accepts every message and sends none. It logs only the 1st, 10th, 100th…: a broadcast has many. */
export function createDrillProvider(logger: Logger): Provider {
  let count = 0;
  return {
    siteOf: () => "drill",
    async send() {
      if (/^10*$/.test(String(++count))) logger.warn("push: a drill sends no push messages", { count });
      return { kind: "held", note: NOTE };
    },
  };
}
