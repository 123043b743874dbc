import type { Clock } from "../../../../kernel/clock.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { clientNetwork } from "../../../../kernel/network/addresses.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import type { UserHoldings } from "../../../access/accounts.ts";
import type { Lookups } from "../../../access/lookups/lookups.ts";
import type { MfaRequired, Tokens } from "../../../config/shapes/sign-in.ts";
import { OwnUser } from "../../../config/shapes/users.ts";
import type { AuthConfig, RateLimit } from "../../../config/types.ts";
import type { RateLimiter } from "../../../http/rate-limit.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Guesses } from "../means/guesses.ts";
import type { Passwords } from "../means/passwords.ts";
import type { Texts } from "../means/texts.ts";
import type { TokenSigner } from "../means/tokens.ts";
import type { AccountFile } from "../store/account-file.ts";
import type { AddressOf } from "../store/address-forms.ts";
import type { Sealing } from "../store/sealing.ts";

/** The parts that services and endpoints work with. */
export interface AuthDeps {
  file: AccountFile;
  tokens: TokenSigner;
  passwords: Passwords;
  sealing: Sealing;
  guesses: Guesses;
  mailer: Mailer;
  /** Counts a mail to an address. */
  mailLimit: RateLimiter;
  /** Counts a change of the address that a user asks for. */
  addressLimit: RateLimiter;
  /** Counts a change of the phone number that a user asks for. */
  phoneLimit: RateLimiter;
  /** Failures that are allowed per email. */
  signInLimit: RateLimit;
  addressOf: AddressOf;
  /** Files and devices of users. */
  holdings: UserHoldings;
  /** Name of the product in mails and texts; empty: not known. */
  appName: () => string;
  publicUrl: () => string;
  /** Returns the lookups of the rule of sign-ups. Called at the first visitor, not before. */
  lookups: () => Lookups;
  clock: Clock;
  ids: Ids;
  logger: Logger;
  config: AuthConfig;
}

/** The parts of what sends texts. */
export interface PhoneDeps extends AuthDeps {
  texts: Texts;
}

/** The client, before authentication. */
export interface Client {
  address: string;
  userAgent: string | null;
  /** First language of `Accept-Language`; null: it names none. */
  language: string | null;
  /** A service key is not limited. */
  isLimited: boolean;
  /** The application for which the pages sign somebody in: it gets a code, and the session begins when the code is redeemed. */
  codeFor?: CodeFor;
}

/** Conditions under which a code of the pages is redeemed. */
export interface CodeFor {
  /** The SHA-256 of what redeems the code, in base64url. */
  challenge: string;
  /** The session of an anonymous user that the new one replaces; null: none. */
  replaces: string | null;
  /** The name with which that user signs up. */
  displayName?: string | undefined;
}

/** A code of the pages, in place of tokens. Only the pages see it. */
export interface CodeGiven {
  pageCode: string;
}

/** The sharer of a client's password hashes. */
export const sharerOf = (client: Client): string => `client:${clientNetwork(client.address)}`;

export type SignInAnswer = Tokens | MfaRequired | CodeGiven;

/** Returns the user as the API shows them to themselves. */
export const ownUser = projection(OwnUser);
