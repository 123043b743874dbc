import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { identityBySubject, insertIdentity } from "../statements/identities.ts";
import type { Profile } from "../means/oauth-provider.ts";

/** A user at a provider, who signs in to an account here from now on. */
export interface NewIdentity extends Pick<Profile, "subject" | "email" | "emailVerified"> {
  id: string;
  provider: string;
}

/** Adds the identity to the account, unless somebody has it already. */
export function linkIdentity(write: AccountWrite, userId: string, identity: NewIdentity): void {
  const { provider, subject } = identity;
  if (identityBySubject.get(write.tx, { provider, subject }) !== null) return;
  insertIdentity.run(write.tx, { ...identity, userId, createdAt: write.now });
  const after = { type: "identity", provider };
  write.tx.auditBy({ kind: "user", name: userId }, { action: "factor.add", target: `users/${userId}`, after });
}

/** The identity as a ticket keeps it until the second factor was given. */
export const pendingIdentity = ({ id, provider, subject, email, emailVerified }: NewIdentity): JsonObject => ({
  identity: { id, provider, subject, email, emailVerified },
});

/** Adds the identity that a ticket has kept; nothing for a ticket without one. */
export function linkPending(write: AccountWrite, userId: string, payload: JsonObject): void {
  const identity = payload["identity"];
  if (!isJsonObject(identity)) return;
  const { id, provider, subject, email, emailVerified } = identity;
  if (typeof id !== "string" || typeof provider !== "string" || typeof subject !== "string") return;
  linkIdentity(write, userId, {
    id,
    provider,
    subject,
    email: typeof email === "string" ? email : null,
    emailVerified: emailVerified === true,
  });
}
