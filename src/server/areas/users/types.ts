import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import type { Account, AccountEntry } from "../../access/accounts.ts";

/** A user in a list. What needs more room is in the detail. */
export const listEntry = (entry: AccountEntry) => ({
  id: entry.id,
  email: entry.email,
  displayName: entry.displayName,
  role: entry.role,
  emailVerified: entry.emailVerified,
  isAnonymous: entry.isAnonymous,
  disabled: entry.disabled,
  createdAt: isoTime(entry.createdAt),
});

/** A user as administrators see one, the same wherever one is answered. */
export const adminUser = (account: Account) => ({
  ...listEntry(account),
  avatarUrl: account.avatarUrl,
  emailVisibility: account.emailVisibility,
  metadata: account.metadata,
  appMetadata: account.appMetadata,
  customClaims: account.customClaims,
});

/** `name` is `displayName` under the name that the detail has always had. */
export const detail = (account: Account) => ({ ...adminUser(account), name: account.displayName });

export const createdUser = (account: Account) => ({ user: adminUser(account) });
