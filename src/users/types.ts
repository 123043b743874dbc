import type { Account } from "../access/accounts.ts";

export interface UserListEntry {
  id: string;
  email: string | null;
  role: string;
  createdAt: string;
}

const iso = (millis: number): string => new Date(millis).toISOString();

/** Spec: User / List entry. */
export const listEntry = ({ id, email, role, createdAt }: Account): UserListEntry => ({
  id,
  email,
  role,
  createdAt: iso(createdAt),
});

/** Spec: User / Detail; what follows `customClaims` is ours. */
export const detail = (account: Account) => ({
  id: account.id,
  email: account.email,
  name: account.displayName,
  role: account.role,
  emailVerified: account.emailVerified,
  createdAt: iso(account.createdAt),
  customClaims: account.customClaims,
  avatarUrl: account.avatarUrl,
  emailVisibility: account.emailVisibility,
  isAnonymous: account.isAnonymous,
  disabled: account.disabled,
  metadata: account.metadata,
  appMetadata: account.appMetadata,
});

/** Spec: User / Create response. */
export const createdUser = ({ id, email, displayName, role, createdAt }: Account) => ({
  user: { id, email, displayName, role, createdAt: iso(createdAt) },
});

/** Spec: User / Update response. */
export const updatedUser = ({ id, email, displayName, role, disabled }: Account) => ({
  id,
  email,
  displayName,
  role,
  disabled,
});
