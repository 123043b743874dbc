import { SECOND_MS } from "../kernel/duration.ts";

/** Whether another try may succeed. Decisions 11. */
export const isBusy = (status: number): boolean => status === 429 || status >= 500;

/** `Retry-After` in milliseconds from now: seconds, or a date; null when absent or neither. */
export function retryAfterMs(headers: Headers, nowMs: number): number | null {
  const value = headers.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(value)) return Number(value) * SECOND_MS;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
