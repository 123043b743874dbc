import { Secret, TOTP } from "otpauth";
import type { Millis } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/duration.ts";

const PERIOD_SECONDS = 30;
const SECRET_BYTES = 20;
/** Steps to either side that a code may be off: clocks differ. [AU28] */
const WINDOW_STEPS = 1;
const CODE = /^\d{6}$/;

const totpOf = (secretBase32: string, label: { issuer: string; account: string }) =>
  new TOTP({
    issuer: label.issuer,
    label: label.account,
    secret: Secret.fromBase32(secretBase32),
    algorithm: "SHA1",
    digits: 6,
    period: PERIOD_SECONDS,
  });

export const createTotpSecret = (): string => new Secret({ size: SECRET_BYTES }).base32;

/** What authenticator apps scan. */
export const totpUri = (secretBase32: string, label: { issuer: string; account: string }): string =>
  totpOf(secretBase32, label).toString();

/**
 * The used steps with this code's, or null when the code is wrong or its step has been used: each is good once, so that
 * who has read a code over somebody's shoulder comes too late. RFC 6238, 5.2.
 */
export function acceptCode(
  secretBase32: string,
  code: string,
  usedSteps: readonly number[],
  now: Millis,
): number[] | null {
  const text = code.replaceAll(" ", "");
  if (!CODE.test(text)) return null;
  const totp = totpOf(secretBase32, { issuer: "", account: "" });
  const delta = totp.validate({ token: text, timestamp: now, window: WINDOW_STEPS });
  if (delta === null) return null;
  const present = Math.floor(now / (PERIOD_SECONDS * SECOND_MS));
  const step = present + delta;
  if (usedSteps.includes(step)) return null;
  return [step, ...usedSteps.filter((used) => used >= present - WINDOW_STEPS)];
}
