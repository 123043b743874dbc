import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, badField } from "../../../../kernel/errors.ts";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { CaptchaConfig } from "../../../config/types.ts";
import { outgoingFetch } from "../../../http/outgoing/call.ts";
import { CAPTCHA_ANSWER_MAX_BYTES, CAPTCHA_CHECKS_AT_ONCE_MAX, CAPTCHA_TIMEOUT_MS } from "../limits.ts";

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

const unavailable = () =>
  new AppError(503, "The CAPTCHA cannot be checked, try again later", { headers: { "retry-after": "5" } });

/** `auth.captcha`: checks that a request comes from a person. */
export class Captcha {
  readonly #config: CaptchaConfig | undefined;
  readonly #isDrill: boolean;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #underWay = 0;

  /** `isDrill`: the provider is not asked, and any token passes. */
  constructor(deps: { config: CaptchaConfig | undefined; isDrill: boolean; clock: Clock; logger: Logger }) {
    this.#config = deps.config;
    this.#isDrill = deps.isDrill;
    this.#clock = deps.clock;
    this.#logger = deps.logger;
  }

  /**
   * Nothing where the config has no CAPTCHA, and for service keys. Called before anything about an account is looked at, so
   * that the answer does not depend on the address. Errors: 400 for a token that is missing or refused, 503 if the provider
   * cannot be asked.
   */
  async check(token: string | null | undefined, client: { address: string; isLimited: boolean }): Promise<void> {
    const config = this.#config;
    if (config === undefined || !client.isLimited) return;
    if (typeof token !== "string" || token === "") {
      throw badField("captchaToken", "required", "captchaToken is required");
    }
    if (this.#isDrill) return;
    if (this.#underWay >= CAPTCHA_CHECKS_AT_ONCE_MAX) throw unavailable();
    const verdict = await this.#ask(config, token, client.address);
    if (verdict.kind === "passed") return;
    if (verdict.kind === "refused") {
      throw badField("captchaToken", "invalid_value", "captchaToken was refused: solve the CAPTCHA again");
    }
    this.#logger.error("A CAPTCHA could not be checked", { provider: config.provider, cause: verdict.reason });
    throw unavailable();
  }

  async #ask(config: CaptchaConfig, token: string, address: string): Promise<Verdict> {
    const ending = new AbortController();
    const cancel = this.#clock.after(CAPTCHA_TIMEOUT_MS, () => ending.abort(new Error("The provider took too long")));
    this.#underWay++;
    try {
      return await askProvider(config, { token, address, signal: ending.signal });
    } catch (cause) {
      return { kind: "unknown", reason: cause };
    } finally {
      cancel();
      this.#underWay--;
    }
  }
}

type Verdict = { kind: "passed" } | { kind: "refused" } | { kind: "unknown"; reason: unknown };

/** Errors: those of `outgoingFetch`: an answer that is too long, also when `signal` is aborted. */
async function askProvider(
  config: CaptchaConfig,
  { token, address, signal }: { token: string; address: string; signal: AbortSignal },
): Promise<Verdict> {
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
