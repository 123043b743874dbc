import type { Millis } from "../../../../kernel/clock.ts";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import type { AcmeConfig } from "../../../config/types.ts";
import { type CertificateFacts, covers } from "../certificate.ts";
import {
  PROBLEM_MAX_CHARS,
  RENEWAL_BEFORE_END_MS,
  RENEWAL_LIFE_SHARE,
  RETRY_AFTER_MAX_MS,
  RETRY_AFTER_MS,
} from "../limits.ts";

/** The state of failed renewals. It is on disk, so that restarts do not exceed the limits of the authority. */
export interface RenewalState {
  /** The order that failed, as `orderOf` writes it. */
  order: string;
  /** The number of failures in a row. */
  failures: number;
  /** The time of the next retry; null without failures. */
  retryAt: Millis | null;
  problem: string | null;
}

export const NO_FAILURE: RenewalState = { order: "", failures: 0, retryAt: null, problem: null };

/** Identifies an order by its domains and authority: failures of another order do not count. */
export function orderOf({ domains, directory }: Pick<AcmeConfig, "domains" | "directory">): string {
  return [directory ?? "default", ...domains.toSorted()].join(" ");
}

/** Returns the state after one more failure, or before an attempt that may be killed. */
export function failed(state: RenewalState, { order, problem, now }: { order: string; problem: string; now: Millis }) {
  const failures = (state.order === order ? state.failures : 0) + 1;
  const delayMs = RETRY_AFTER_MS[Math.min(failures, RETRY_AFTER_MS.length) - 1] ?? 0;
  const asked = retryTimeIn(problem) ?? 0;
  const retryAt = Math.min(Math.max(now + delayMs, asked), now + RETRY_AFTER_MAX_MS);
  return { order, failures, retryAt, problem: problem.slice(0, PROBLEM_MAX_CHARS) } satisfies RenewalState;
}

/** Parses the end of a rate limit from a message of Let's Encrypt: `retry after 2026-11-22 08:00:00 UTC`. */
function retryTimeIn(problem: string): Millis | null {
  const [, day = "", time = ""] = /retry after (\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)/i.exec(problem) ?? [];
  return day === "" ? null : Date.parse(`${day}T${time}Z`);
}

/** Returns when the next renewal is due; in the past: now. `facts` null: there is no certificate. */
export function renewalTime(
  config: Pick<AcmeConfig, "domains" | "directory">,
  { facts, state, now }: { facts: CertificateFacts | null; state: RenewalState; now: Millis },
): Millis {
  const isComplete = facts !== null && config.domains.every((name) => covers(facts, name));
  const wanted = isComplete ? beforeEnd(facts) : now;
  if (state.order !== orderOf(config) || state.retryAt === null) return wanted;
  // A later retry time was set before the clock was set back.
  return Math.max(wanted, Math.min(state.retryAt, now + RETRY_AFTER_MAX_MS));
}

/** Returns when to renew: in the last third of the life of certificates that live for days. */
function beforeEnd({ validFrom, validUntil }: CertificateFacts): Millis {
  return validUntil - Math.min(RENEWAL_BEFORE_END_MS, (validUntil - validFrom) * RENEWAL_LIFE_SHARE);
}

export function parseState(text: string): RenewalState {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return NO_FAILURE;
  }
  if (!isJsonObject(value)) return NO_FAILURE;
  const { order, failures, retryAt, problem } = value;
  if (typeof order !== "string" || typeof failures !== "number" || typeof retryAt !== "number") return NO_FAILURE;
  return { order, failures, retryAt, problem: typeof problem === "string" ? problem : null };
}
