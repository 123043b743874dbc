import { Type } from "typebox";
import { optional, refine } from "../../../../kernel/schema/types.ts";
import { parseDuration, SECOND_MS } from "../../../../kernel/time/duration.ts";
import { Key } from "./keys.ts";
import { SIGNED_URL_DEFAULT_SECONDS, SIGNED_URL_KEYS_MAX, SIGNED_URL_MAX_SECONDS } from "../limits.ts";

/** How long a signed URL is valid, as a number. */
const Seconds = Type.Integer({
  minimum: 1,
  maximum: SIGNED_URL_MAX_SECONDS,
  default: SIGNED_URL_DEFAULT_SECONDS,
  description: "Seconds",
});

const isDuration = (text: string): boolean => parseDuration(text) !== null;
// Where the text is not a duration, the first condition refuses it.
const isLongEnough = (text: string): boolean => (secondsOf(text) ?? 1) >= 1;
const isShortEnough = (text: string): boolean => (secondsOf(text) ?? 1) <= SIGNED_URL_MAX_SECONDS;

const Text = Type.String({ description: "`30m`, `1h`, `7d`; default `1h`, at most `7d`" });

/** The same, as a text such as `1h`. */
const Duration = refine(
  refine(
    refine(Text, isDuration, (name) => ({
      code: "invalid_type",
      message: `${name} must be a duration such as "1h"`,
    })),
    isLongEnough,
    (name) => ({ code: "too_small", message: `${name} must be at least 1 second` }),
  ),
  isShortEnough,
  (name) => ({ code: "too_large", message: `${name} must be at most ${SIGNED_URL_MAX_SECONDS} seconds (7 days)` }),
);

export const SignOne = Type.Object({ key: Key, expiresIn: optional(Seconds) });
export const SignSeveral = Type.Object({
  keys: Type.Array(Type.String(), { maxItems: SIGNED_URL_KEYS_MAX }),
  expiresIn: optional(Duration),
});
export const SignUpload = Type.Object({
  key: Key,
  expiresIn: optional(Seconds),
  contentType: optional(Type.String({ description: "What the PUT has to declare; without it, any type" })),
});

/** null for no text, and for a text that is not a duration. */
export function secondsOf(text: string | null): number | null {
  const milliseconds = text === null ? null : parseDuration(text);
  return milliseconds === null ? null : milliseconds / SECOND_MS;
}
