import type { Millis } from "../../../../kernel/clock.ts";
import { conflict, unauthorized } from "../../../../kernel/errors.ts";
import type { AuthConfig } from "../../../config/types.ts";
import type { Readable } from "../../../db/query.ts";
import { RECENT_PROOF_MS } from "../limits.ts";
import {
  type Factor,
  factorsOfUser,
  type Identity,
  identitiesOfUser,
  type Passkey,
  passkeysOfUser,
} from "../statements/means.ts";
import { type SecretAccount, userById } from "../statements/users.ts";
import { type Caller, sessionOf } from "../store/account-file.ts";

/** The ways of signing in that a user has and the present config enables. */
interface WaysIn {
  /** A password, which can be set by mail, or a link or code to the address. */
  email: boolean;
  /** A number to which a code is sent, and which is not its own and only second factor. */
  phone: boolean;
  identities: readonly Identity[];
  passkeys: readonly Passkey[];
}

function waysIn(sql: Readable, account: SecretAccount, config: AuthConfig): WaysIn {
  const takesMail = config.emailPassword !== false || config.magicLink === true || config.emailOtp === true;
  const providers = config.oauth ?? {};
  return {
    email: account.email !== null && takesMail,
    phone:
      account.phone !== null &&
      config.phones !== undefined &&
      config.phones.signIn !== false &&
      (!hasFactor(sql, account, "phone") || hasFactor(sql, account, "totp")),
    identities: identitiesOfUser
      .all(sql, { userId: account.id })
      .filter(({ provider }) => Object.hasOwn(providers, provider)),
    passkeys: config.passkeys === undefined ? [] : passkeysOfUser.all(sql, { userId: account.id }),
  };
}

const hasFactor = (sql: Readable, { id: userId }: SecretAccount, type: Factor["type"]): boolean =>
  factorsOfUser.all(sql, { userId }).some((factor) => factor.type === type && factor.verified);

/**
 * Keeps a user from making the phone the second factor of itself, and of nothing else: a phone that signs in completes no sign-in.
 * Errors: 409.
 */
export function requireMoreThanPhone(sql: Readable, account: SecretAccount, config: AuthConfig): void {
  const { email, identities, passkeys } = waysIn(sql, account, config);
  if (email || identities.length > 0 || passkeys.length > 0 || hasFactor(sql, account, "totp")) return;
  throw conflict("The phone is the only way to sign in to this account, and cannot be its second factor too");
}

/** Errors: 409 when nothing would be left to sign in with after this identity or passkey is gone (empty: none of them). */
export function requireOtherWayIn(sql: Readable, account: SecretAccount, config: AuthConfig, removedId: string): void {
  const { email, phone, identities, passkeys } = waysIn(sql, account, config);
  if (email || phone || [...identities, ...passkeys].some(({ id }) => id !== removedId)) return;
  throw conflict("This is the only way to sign in to this account");
}

/**
 * The user, who has signed in or confirmed the password in this session within the last ten minutes: an access token alone,
 * which may have been stolen, must not add or remove ways of signing in. An anonymous user without any needs no proof.
 * Errors: 401. [AU100]
 */
export function requireRecentProof(sql: Readable, caller: Caller, config: AuthConfig, now: Millis): SecretAccount {
  const session = sessionOf(sql, caller);
  const account = session === null ? null : userById.get(sql, { id: caller.userId });
  if (session === null || account === null) throw unauthorized("Invalid token");
  // A clock that was set back makes a proof older, not younger than it is.
  const age = Math.abs(now - session.provedAt);
  if (age <= RECENT_PROOF_MS) return account;
  if (account.isAnonymous) {
    const { email, phone, identities, passkeys } = waysIn(sql, account, config);
    if (!email && !phone && identities.length === 0 && passkeys.length === 0) return account;
  }
  throw unauthorized("Sign in again");
}
