import type { Clock } from "../../../../kernel/clock.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import { HOUR_MS, SECOND_MS } from "../../../../kernel/time/duration.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import { PHONE_TEXTS_PER_HOUR } from "../../../config/sections/auth-phones.ts";
import type { PhonesConfig, TextContext } from "../../../config/types.ts";
import { outgoingCall } from "../../../http/outgoing/call.ts";
import { createRateLimiter, type RateLimiter } from "../../../http/rate-limit.ts";
import { TEXT_POST_TIMEOUT_MS, TEXT_TIMEOUT_MS, TEXTS_AT_ONCE_MAX, TEXTS_PER_NUMBER } from "../limits.ts";

/**
 * The uses of texts. Each has its own bounds: sign-ins, which anybody may ask for, leave those alone that need a password or a session, and
 * who has stolen a session leaves the second factors of sign-ins alone.
 */
export type TextUse = "sign-in" | "second factor" | "change" | "managing";

type CodeText = Readonly<Record<"en" | "de", (code: string, to: string) => string>>;

const SIGN_IN: CodeText = {
  en: (code, to) => `${code} is your code to sign in${to === "" ? "" : ` to ${to}`}. Nobody will ever ask you for it.`,
  de: (code, to) =>
    `${code} ist Ihr Code zum Anmelden${to === "" ? "" : ` bei ${to}`}. Niemand wird Sie je danach fragen.`,
};

const TEXTS: Readonly<Record<TextUse, CodeText>> = {
  "sign-in": SIGN_IN,
  "second factor": SIGN_IN,
  change: {
    en: (code, to) => `${code} confirms this number${to === "" ? "" : ` at ${to}`}. Nobody will ever ask you for it.`,
    de: (code, to) =>
      `${code} bestätigt diese Nummer${to === "" ? "" : ` bei ${to}`}. Niemand wird Sie je danach fragen.`,
  },
  managing: {
    en: (code, to) =>
      `${code} confirms a change of how you sign in${to === "" ? "" : ` to ${to}`}. Nobody will ever ask you for it.`,
    de: (code, to) =>
      `${code} bestätigt eine Änderung Ihrer Anmeldung${to === "" ? "" : ` bei ${to}`}. Niemand wird Sie je danach fragen.`,
  },
};

interface TextsDeps {
  config: PhonesConfig;
  app: () => AppAccess;
  appName: () => string;
  isDrill: boolean;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** Sends codes to phones by `auth.phones.send`. */
export class Texts {
  readonly config: PhonesConfig;
  readonly #deps: TextsDeps;
  readonly #perHour: Readonly<Record<TextUse, RateLimiter>>;
  readonly #perNumber: RateLimiter;
  #underWay = 0;

  constructor(deps: TextsDeps) {
    this.#deps = deps;
    this.config = deps.config;
    const { perHour = PHONE_TEXTS_PER_HOUR } = deps.config;
    const hourly = () => createRateLimiter({ requests: perHour, window: HOUR_MS / SECOND_MS }, deps.clock);
    this.#perHour = { "sign-in": hourly(), "second factor": hourly(), change: hourly(), managing: hourly() };
    this.#perNumber = createRateLimiter(TEXTS_PER_NUMBER, deps.clock);
  }

  /** Counts a text that is asked for, whether or not it is sent. Errors: 429 for too many to this number, or of the server. */
  count(use: TextUse, number: string): void {
    this.#perNumber.hit(`${use}:${number}`);
    this.#perHour[use].hit("");
  }

  /** Sends a code, once, without being waited for: neither time nor failure tells who has the number. `language`: null for English. */
  send(use: TextUse, { number, code, language }: { number: string; code: string; language: string | null }): void {
    const { app, appName, isDrill, clock, ids, logger } = this.#deps;
    if (isDrill) return;
    if (this.#underWay >= TEXTS_AT_ONCE_MAX) {
      return void logger.error("auth: a text was not sent, as too many are being sent", { underWay: this.#underWay });
    }
    const tag = /^de\b/.test(language ?? "") ? "de" : "en";
    const text = TEXTS[use][tag](code, appName());
    this.#underWay++;
    const context = { id: `text_${ids.uuid()}`, timestamp: Math.floor(clock.now() / SECOND_MS), post };
    const sent = (async () => {
      // The answer leaves first: what a sender does before it waits would tell, by the time, that a text is sent.
      await nextTurn();
      return this.config.send(app(), { to: number, code, text }, context);
    })();
    within(clock, TEXT_TIMEOUT_MS, sent)
      .catch((cause: unknown) => logger.error("auth: a text could not be sent", { cause }))
      .finally(() => this.#underWay--);
  }
}

const post: TextContext["post"] = async (url, request) => {
  const answer = await outgoingCall(url, {
    method: "POST",
    ...request,
    signal: AbortSignal.timeout(TEXT_POST_TIMEOUT_MS),
  });
  answer.drop();
  return answer.status;
};
