import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import type { Profile } from "../providers/profile.ts";
import {
  deleteIdentitiesOfUser,
  deletePasskeysOfUser,
  deleteUnverifiedFactors,
  identityBySubject,
  insertIdentity,
} from "../statements/means.ts";
import { deleteSecretsOfOwner } from "../statements/secrets.ts";
import { clearPassword, type SecretAccount, userById } from "../statements/users.ts";
import type { AccountWrite } from "../store/account-file.ts";

// What adds and removes ways of signing in. Users' changes of their own are in the audit log, whoever makes them. [AL6]

/** Removes all passkeys of the user. */
export function removePasskeys(write: AccountWrite, userId: string): void {
  if (deletePasskeysOfUser.run(write.tx, { userId }) === 0) return;
  write.auditByUser(userId, "factor.delete", { type: "passkey" });
}

/** Removes the phone number of the user, and the second factor that it is. */
export function removePhone(write: AccountWrite, userId: string): void {
  if ((userById.get(write.tx, { id: userId })?.phone ?? null) === null) return;
  write.update(userId, { phone: null });
  write.auditByUser(userId, "factor.delete", { type: "phone" });
}

/**
 * Removes the credentials of an account whose address was not verified, for its owner, who has just read a mail to it: somebody
 * else may have signed up with the address before, and must not keep a way in. A verified factor stays, as every way of
 * signing in requires it. [AU24]
 */
export function clearUnproven(write: AccountWrite, userId: string): void {
  write.endSessions(userId, { except: null });
  deleteUnverifiedFactors.run(write.tx, { userId });
  deleteSecretsOfOwner.run(write.tx, { userId });
  clearPassword.run(write.tx, { id: userId });
  deleteIdentitiesOfUser.run(write.tx, { userId });
  removePasskeys(write, userId);
  removePhone(write, userId);
}

/** A user at a provider, who signs in to an account here from now on. */
export interface NewIdentity extends Pick<Profile, "subject" | "email" | "emailVerified"> {
  id: string;
  provider: string;
  /** The provider's tokens, encrypted; absent: none are kept. */
  tokens?: string | null;
}

/** Whether the provider has verified the address of the account: that it has verified another one says nothing about the account. [AU101] */
export const isOfAddress = (
  { email, emailVerified }: Pick<Profile, "email" | "emailVerified">,
  account: Pick<SecretAccount, "email"> | null,
): boolean => emailVerified && email !== null && email === account?.email;

/** Adds the identity to the account, unless somebody has it already. */
export function linkIdentity(write: AccountWrite, userId: string, identity: NewIdentity): void {
  const { provider, subject } = identity;
  if (identityBySubject.get(write.tx, { provider, subject }) !== null) return;
  const emailVerified = isOfAddress(identity, userById.get(write.tx, { id: userId }));
  insertIdentity.run(write.tx, { ...identity, emailVerified, userId, createdAt: write.now });
  write.auditByUser(userId, "factor.add", { type: "identity", provider });
}

/** The identity as a ticket keeps it until the second factor was given. */
export const pendingIdentity = ({
  id,
  provider,
  subject,
  email,
  emailVerified,
  tokens = null,
}: NewIdentity): JsonObject => ({ identity: { id, provider, subject, email, emailVerified, tokens } });

/** Adds the identity that a ticket has kept; nothing for a ticket without one. */
export function linkPending(write: AccountWrite, userId: string, payload: JsonObject): void {
  const identity = payload["identity"];
  if (!isJsonObject(identity)) return;
  const { id, provider, subject, email, emailVerified, tokens } = identity;
  if (typeof id !== "string" || typeof provider !== "string" || typeof subject !== "string") return;
  linkIdentity(write, userId, {
    id,
    provider,
    subject,
    email: typeof email === "string" ? email : null,
    emailVerified: emailVerified === true,
    tokens: typeof tokens === "string" ? tokens : null,
  });
}
