import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { clientNetwork } from "../../../kernel/network/client-network.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import type { Account } from "../../access/accounts.ts";
import type { AuthConfig, RateLimit } from "../../config/types.ts";
import type { AccountFile } from "./account-file.ts";
import type { Guesses } from "./password/guesses.ts";
import type { Passwords } from "./password/passwords.ts";
import type { Sealing } from "./sealing.ts";
import type { SessionCache } from "./session/cache.ts";
import type { Tokens } from "./session/tokens.ts";

/** What every part of the area works with. */
export interface AuthDeps {
  file: AccountFile;
  sessions: SessionCache;
  tokens: Tokens;
  passwords: Passwords;
  sealing: Sealing;
  guesses: Guesses;
  clock: Clock;
  ids: Ids;
  logger: Logger;
  config: AuthConfig;
  /** Failures that are allowed per email. */
  signInLimit: RateLimit;
}

/** The client, before authentication. */
export interface Client {
  address: string;
  userAgent: string | null;
  /** A service key is not limited. */
  isLimited: boolean;
}

/** The sharer of a client's password hashes. */
export const sharerOf = (client: Client): string => `client:${clientNetwork(client.address)}`;

/** A user as the API shows it to that user. */
export interface OwnUser {
  id: string;
  email: string | null;
  displayName: string | null;
  avatarUrl: string | null;
  role: string;
  emailVerified: boolean;
  isAnonymous: boolean;
  createdAt: string;
  emailVisibility: "public" | "private";
  metadata: JsonObject;
  customClaims: JsonObject;
}

export interface TokenAnswer {
  user: OwnUser;
  accessToken: string;
  refreshToken: string;
}

export interface MfaAnswer {
  mfaRequired: true;
  mfaTicket: string;
  factors: { id: string; type: string }[];
}

export type SignInAnswer = TokenAnswer | MfaAnswer;

/** What is not named here never leaves the server, `appMetadata` above all. */
export function ownUser(account: Account): OwnUser {
  return {
    id: account.id,
    email: account.email,
    displayName: account.displayName,
    avatarUrl: account.avatarUrl,
    role: account.role,
    emailVerified: account.emailVerified,
    isAnonymous: account.isAnonymous,
    createdAt: isoTime(account.createdAt),
    emailVisibility: account.emailVisibility,
    metadata: account.metadata,
    customClaims: account.customClaims,
  };
}
