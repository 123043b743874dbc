import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, badField } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { CaptchaConfig } from "../../../config/types.ts";
import { CAPTCHA_CHECKS_AT_ONCE_MAX, CAPTCHA_TIMEOUT_MS } from "../limits.ts";
import type { Client } from "../sessions/deps.ts";
import { askProvider, type Verdict } from "./captcha-provider.ts";

export interface Captcha {
  /**
   * Nothing where the config has no CAPTCHA, and for service keys. Called before anything about an account is looked at, so
   * that the answer does not depend on the address. Errors: 400 for a token that is missing or refused, 503 if the provider
   * cannot be asked.
   */
  check(token: string | null | undefined, client: Client): Promise<void>;
}

const unavailable = () =>
  new AppError(503, "The CAPTCHA cannot be checked, try again later", { headers: { "retry-after": "5" } });

export function createCaptcha(deps: {
  config: CaptchaConfig | undefined;
  /** true: the provider is not asked, and any token passes. */
  isDrill: boolean;
  clock: Clock;
  logger: Logger;
}): Captcha {
  const { config, logger } = deps;
  if (config === undefined) return { check: async () => {} };
  let underWay = 0;

  const ask = async (token: string, address: string): Promise<Verdict> => {
    const ending = new AbortController();
    const cancel = deps.clock.after(CAPTCHA_TIMEOUT_MS, () => ending.abort(new Error("The provider took too long")));
    underWay++;
    try {
      return await askProvider(config, { token, address, signal: ending.signal });
    } catch (cause) {
      return { kind: "unknown", reason: cause };
    } finally {
      cancel();
      underWay--;
    }
  };

  return {
    async check(token, client) {
      if (!client.isLimited) return;
      if (typeof token !== "string" || token === "") {
        throw badField("captchaToken", "required", "captchaToken is required");
      }
      if (deps.isDrill) return;
      if (underWay >= CAPTCHA_CHECKS_AT_ONCE_MAX) throw unavailable();
      const verdict = await ask(token, client.address);
      if (verdict.kind === "passed") return;
      if (verdict.kind === "refused") {
        throw badField("captchaToken", "invalid_value", "captchaToken was refused: solve the CAPTCHA again");
      }
      logger.error("A CAPTCHA could not be checked", { provider: config.provider, cause: verdict.reason });
      throw unavailable();
    },
  };
}
