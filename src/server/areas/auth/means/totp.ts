import { Secret, TOTP } from "otpauth";
import type { Millis } from "../../../../kernel/clock.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";

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

/** The content of the QR code that authenticator apps scan. */
export const totpUri = (secretBase32: string, label: { issuer: string; account: string }): string =>
  totpOf(secretBase32, label).toString();

/**
 * The used steps including this code's, or null if the code is wrong or its step has been used: each code is valid once, so
 * that one read over the user's shoulder is of no use (RFC 6238, 5.2).
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
