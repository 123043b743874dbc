import { hkdfSync } from "node:crypto";
import type { Millis } from "../../../kernel/clock.ts";
import { badField, badRequest, noProblems, tooLarge } from "../../../kernel/errors.ts";
import { throwProblems } from "../../../kernel/fields.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { NONCE_BYTES, openSealed, sealText } from "../../../kernel/sealing.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { isIsoDateTime, parseIsoDateTime } from "../../../kernel/time/iso-datetime.ts";
import type { EnqueueJobOptions } from "../../config/app/index.ts";
import { DATA_MAX_BYTES, DELAY_MAX_SECONDS, KEY_LENGTH_MAX } from "../limits.ts";
import type { EnqueueOptions } from "../types.ts";

/** A job to be written. */
export interface NewJob {
  id: string;
  name: string;
  /** Data as JSON. */
  data: string;
  secret: Uint8Array | null;
  key: string | null;
  group: string | null;
  createdAt: Millis;
  dueAt: Millis;
}

/** Picks the options that a config's code may set. Errors: 400 that names each unknown one, which would have no effect. */
export function chosenOptions(options: EnqueueJobOptions = {}): Pick<EnqueueOptions, "delay" | "at" | "key"> {
  const { delay, at, key, ...others } = options;
  const problems = noProblems();
  for (const [name, value] of Object.entries(others)) {
    if (value !== undefined) problems[name] = { code: "unknown_field", message: `${name} is not an option of a job` };
  }
  throwProblems(problems);
  return { delay, at, key };
}

/** Serialises data as JSON. Errors: 413 over DATA_MAX_BYTES. */
export function dataText(data: JsonValue): string {
  const text = JSON.stringify(data);
  // UTF-8 has at most three bytes per UTF-16 unit: small values need no count.
  if (text.length * 3 <= DATA_MAX_BYTES) return text;
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes <= DATA_MAX_BYTES) return text;
  throw tooLarge(`data must be at most ${DATA_MAX_BYTES} bytes of JSON, got ${sizeBytes}`);
}

/** Checks a key, a group or an id; null for undefined. Errors: 400 if it is empty or too long. */
export function requireKey(name: "key" | "group" | "id", value: string | undefined): string | null {
  if (value === undefined) return null;
  if (typeof value !== "string") throw badField(name, "invalid_type", `${name} must be a string`);
  if (value === "") throw badField(name, "too_short", `${name} must have at least 1 character`);
  if (value.length <= KEY_LENGTH_MAX) return value;
  throw badField(name, "too_long", `${name} must have at most ${KEY_LENGTH_MAX} characters, got ${value.length}`);
}

/** Returns the time at which a job is due. Errors: 400 for a delay or a time that is not valid, and for both together. */
export function dueTime({ delay, at }: EnqueueOptions, now: Millis): Millis {
  if (delay !== undefined && at !== undefined) throw badRequest("Give either delay or at, not both");
  if (at !== undefined) return timeOf(at);
  if (delay === undefined) return now;
  if (typeof delay !== "number") throw badField("delay", "invalid_type", "delay must be a number of seconds");
  if (delay >= 0 && delay <= DELAY_MAX_SECONDS) return now + Math.round(delay * SECOND_MS);
  throw badField("delay", "invalid_value", `delay must be 0 to ${DELAY_MAX_SECONDS} seconds, got ${delay}`);
}

function timeOf(at: Date | string): Millis {
  const time =
    at instanceof Date ? at.getTime() : isIsoDateTime(String(at)) ? parseIsoDateTime(String(at)) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  throw badField("at", "invalid_value", "at must be a valid Date, or a date and time in ISO 8601");
}

/** Encrypts secrets of jobs with a key that is derived from the server's secret. A sealed text opens only for its own job. */
export type JobSealing = ReturnType<typeof createJobSealing>;

export function createJobSealing(secret: string, ids: Ids) {
  const key = Buffer.from(hkdfSync("sha256", secret, "", "platform/jobs", 32));
  return {
    seal(jobId: string, text: string): Uint8Array {
      const nonce = Buffer.from(ids.secret(NONCE_BYTES), "base64url");
      return sealText(text, { key, nonce, context: jobId });
    },
    /** Decrypts a secret; null for one that was sealed with another server's secret. */
    unseal: (jobId: string, sealed: Uint8Array): string | null => openSealed(sealed, { key, context: jobId }),
  };
}
