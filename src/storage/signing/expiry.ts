import { Type } from "typebox";
import { parseDuration, SECOND_MS } from "../../kernel/duration.ts";
import { refine } from "../../kernel/schema/types.ts";
import { SIGNED_URL_DEFAULT_SECONDS, SIGNED_URL_MAX_SECONDS } from "../limits.ts";

/** How long a signed URL is good, as a number. */
export const Seconds = Type.Integer({
  minimum: 1,
  maximum: SIGNED_URL_MAX_SECONDS,
  default: SIGNED_URL_DEFAULT_SECONDS,
  description: "Seconds",
});

const isDuration = (text: string): boolean => parseDuration(text) !== null;
// What is not a duration is the first rule's to refuse.
const isLongEnough = (text: string): boolean => (secondsOf(text) ?? 1) >= 1;
const isShortEnough = (text: string): boolean => (secondsOf(text) ?? 1) <= SIGNED_URL_MAX_SECONDS;

const Text = Type.String({ description: "`30m`, `1h`, `7d`; default `1h`, at most `7d`" });

/** The same, as a text such as `1h`. */
export const Duration = refine(
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

/** null: there is none, or it is no duration. */
export function secondsOf(text: string | null): number | null {
  const milliseconds = text === null ? null : parseDuration(text);
  return milliseconds === null ? null : milliseconds / SECOND_MS;
}
