import { isJsonObject } from "../../../../kernel/json/json.ts";
import type { CaptchaConfig } from "../../../config/types.ts";
import { outgoingFetch } from "../../../http/outgoing/call.ts";
import { CAPTCHA_ANSWER_MAX_BYTES } from "../limits.ts";

export type Verdict = { kind: "passed" } | { kind: "refused" } | { kind: "unknown"; reason: unknown };

interface Question {
  token: string;
  address: string;
  signal: AbortSignal;
}

const ENDPOINTS: Readonly<Record<CaptchaConfig["provider"], string>> = {
  turnstile: "https://challenges.cloudflare.com/turnstile/v0/siteverify",
  hcaptcha: "https://api.hcaptcha.com/siteverify",
};

/** Codes that are about the config or the provider. Every other code is about the token. */
const OWN_FAULTS: ReadonlySet<unknown> = new Set([
  "missing-input-secret",
  "invalid-input-secret",
  "sitekey-secret-mismatch",
  "not-using-dummy-passcode",
  "internal-error",
]);

/** Errors: those of `outgoingFetch`: an answer that is too long, also when `signal` is aborted. */
export async function askProvider(config: CaptchaConfig, { token, address, signal }: Question): Promise<Verdict> {
  const form = new URLSearchParams({ secret: config.secretKey, response: token, remoteip: address });
  // hCaptcha then refuses tokens that were solved for another site.
  if (config.provider === "hcaptcha") form.set("sitekey", config.siteKey);
  const response = await outgoingFetch(config.endpoint ?? ENDPOINTS[config.provider], {
    method: "POST",
    body: form,
    signal,
    maxBytes: CAPTCHA_ANSWER_MAX_BYTES,
  });
  const answer: unknown = await response.json().catch(() => null);
  if (isJsonObject(answer) && answer["success"] === true && response.ok) return { kind: "passed" };
  const codes = isJsonObject(answer) ? (answer["error-codes"] ?? []) : [];
  // Turnstile answers some refusals with 400 and the same body.
  const isRefusal = isJsonObject(answer) && answer["success"] === false && response.status < 500;
  if (isRefusal && Array.isArray(codes) && !codes.some((code) => OWN_FAULTS.has(code))) return { kind: "refused" };
  return { kind: "unknown", reason: { status: response.status, codes } };
}
