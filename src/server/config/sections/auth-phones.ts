import { type Static, Type } from "typebox";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { AppAccess } from "../app/index.ts";
import { isPlainObject, type PlainObject, type Report } from "../shape/report.ts";
import { func, list, textWith, whole } from "../shape/schema.ts";

/** The texts of the server in an hour, where the config says nothing else. */
export const PHONE_TEXTS_PER_HOUR = 100;
const PHONE_TEXTS_PER_HOUR_MAX = 1_000_000;

/** A text to a phone. */
export interface PhoneText {
  /** The number in E.164, such as `+4366012345678`. */
  to: string;
  /** The six digits. */
  code: string;
  /** The text with the code, in the language of the account, or of the request where there is none. */
  text: string;
}

/** The parts that a sender works with, beside `app`. */
export interface TextContext {
  /** Another id for each text. */
  id: string;
  /** The time in Unix seconds. */
  timestamp: number;
  /**
   * Posts to a provider, and returns the status: no redirect is followed, and the answer's body is not read. Errors: no answer within
   * 10 s.
   */
  post(url: string, request: { headers: Record<string, string>; body: string }): Promise<number>;
}

/**
 * Sends a text, through a provider. The answer to the request neither waits for it nor depends on it: what it throws is logged, as is
 * that it takes over 15 s.
 */
export type SendText = (app: AppAccess, text: PhoneText, context: TextContext) => MaybePromise<unknown>;

const country = textWith((value) => (/^[A-Z]{2}$/.test(value) ? null : "must be a country such as AT (ISO 3166-1)"));
const prefix = textWith((value) =>
  /^\+[1-9]\d{0,14}$/.test(value) ? null : "must be the beginning of numbers, such as +4390",
);

export const Phones = Type.Object({
  /** Sends a text: `twilioSender`, `webhookSender`, or a function of yours. */
  send: func<SendText>(),
  /** The countries of the numbers that are taken (ISO 3166-1), or `"all"`: texts to some countries are expensive. */
  countries: Type.Union([list(country), Type.Literal("all")]),
  /** Beginnings of numbers that are not taken, such as `+4390`. */
  refuse: Type.Optional(list(prefix)),
  /** The maximum number of texts for sign-ins in an hour, of the whole server; 100 by default. Other texts have as many of their own. */
  perHour: Type.Optional(whole({ min: 1, max: PHONE_TEXTS_PER_HOUR_MAX })),
  /** Whether a code signs in; true by default. false: numbers are only changed. */
  signIn: Type.Optional(Type.Boolean()),
});
/** Checks that a phone is a second factor only where texts are sent. */
export function checkPhoneFactor({ auth }: PlainObject, report: Report): void {
  if (!isPlainObject(auth) || auth["phones"] !== undefined) return;
  const { mfa } = auth;
  if (!isPlainObject(mfa) || mfa["phone"] !== true) return;
  report.at("auth").at("mfa").at("phone").say("needs auth.phones, which sends the codes");
}
export interface PhonesConfig extends Static<typeof Phones> {}
