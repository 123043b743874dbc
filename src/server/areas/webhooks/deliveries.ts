import type { Clock, Millis } from "../../../kernel/clock.ts";
import { isJsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import type { WebhookConfig } from "../../config/types.ts";
import { FinalFailure, type JobDefinition } from "../../jobs/index.ts";
import type { Endings } from "./endings.ts";
import {
  DELIVERIES_MAX,
  RETRIED_FOR_MS,
  RETRY_FIRST_MS,
  RETRY_JITTER,
  RETRY_MAX_MS,
  RUN_TIMEOUT_SECONDS,
} from "./limits.ts";
import { type Reply, send } from "./sending.ts";

const GONE = 410;

/** Returns the definition of the deliveries of one webhook for the queue. */
export function deliveryDefinition(
  name: string,
  config: WebhookConfig,
  { endings, clock }: { endings: Endings; clock: Clock },
): JobDefinition {
  return {
    // The retry time is the limit: see `backoff`.
    retries: Number.MAX_SAFE_INTEGER,
    timeout: RUN_TIMEOUT_SECONDS,
    concurrency: DELIVERIES_MAX,
    backoff: ({ attempt, createdAt, random }) => retryDelay(attempt, { createdAt, now: clock.now(), random }),
    async run({ id, data, attempt, lastError, signal, answered }) {
      // A first try after an earlier failure: somebody has retried the delivery.
      if (attempt === 1 && lastError !== null) endings.resume(name);
      if (endings.isEnded(name)) throw new FinalFailure(ended(name));
      const reply = await send(config, { id, body: bodyOf(data) }, { clock, signal });
      if (reply.kind === "answered") answered(reply.answer);
      if (reply.kind === "answered" && reply.answer.status === GONE) {
        endings.end(name);
        throw new FinalFailure(ended(name));
      }
      const problem = problemOf(reply);
      if (problem !== null) throw new Error(problem);
    },
  };
}

/**
 * Returns the backoff, which doubles from RETRY_FIRST_MS to RETRY_MAX_MS, less a random part of RETRY_JITTER, so that a receiver
 * that comes back does not get all deliveries at once. The last try is at the end of RETRIED_FOR_MS. null: that time is over.
 * `random`: at least 0 and less than 1.
 */
function retryDelay(
  attempt: number,
  { createdAt, now, random }: { createdAt: Millis; now: Millis; random: number },
): Millis | null {
  const leftMs = createdAt + RETRIED_FOR_MS - now;
  const delayMs = Math.min(RETRY_FIRST_MS * 2 ** (attempt - 1), RETRY_MAX_MS) * (1 - RETRY_JITTER * random);
  return leftMs <= 0 ? null : Math.min(Math.ceil(delayMs), leftMs);
}

/** Serialises the body, with the same bytes in each try. */
function bodyOf(data: JsonValue): string {
  const { type = null, at = null, before = null, after = null, instanceId = null } = isJsonObject(data) ? data : {};
  return JSON.stringify({ type, timestamp: at, data: { before, after, instanceId } });
}

function problemOf(reply: Reply): string | null {
  if (reply.kind === "failed") return `The receiver could not be reached: ${reply.reason}`;
  const { status } = reply.answer;
  if (status >= 200 && status < 300) return null;
  if (status >= 300 && status < 400) return `The receiver answered ${status}; redirects are not followed`;
  return `The receiver answered ${status}`;
}

const ended = (name: string): string =>
  `The receiver has answered 410 Gone: the deliveries of "${name}" have ended. They go on when its config changes, or when a ` +
  "delivery is retried";
