import type { Millis } from "../../../../kernel/clock.ts";
import type { NewAccount } from "../../../access/accounts.ts";
import type { UserValues } from "../statements/users.ts";

/** A user to be inserted: absent members have their defaults. */
export interface NewUser extends Omit<NewAccount, "id" | "email" | "password"> {
  id: string;
  email: string | null;
  isAnonymous?: boolean;
  /** true for a user who is given a session in the same write. */
  hasSignedIn?: boolean;
}

export function userValues(user: NewUser, now: Millis): UserValues {
  return {
    id: user.id,
    email: user.email,
    emailVerified: user.emailVerified ?? false,
    passwordHash: user.passwordHash ?? null,
    displayName: user.displayName ?? null,
    avatarUrl: user.avatarUrl ?? null,
    role: user.role ?? "user",
    isAnonymous: user.isAnonymous ?? false,
    metadata: user.metadata ?? {},
    appMetadata: user.appMetadata ?? {},
    hasSignedIn: user.hasSignedIn ?? false,
    createdAt: now,
  };
}
