import type { Database } from "bun:sqlite";
import type { JsonObject } from "../../../../kernel/json/json.ts";

interface AccountRow {
  id: string;
  email: string | null;
  emailVerified: number;
  emailVisibility: string;
  passwordHash: string | null;
  displayName: string | null;
  avatarUrl: string | null;
  role: string;
  isAnonymous: number;
  disabled: number;
  metadata: string;
  appMetadata: string;
  customClaims: string;
  createdAt: number;
  language: string | null;
  phone: string | null;
}

interface IdentityRow {
  userId: string;
  provider: string;
  subject: string;
  email: string | null;
  emailVerified: number;
}

/**
 * Yields the accounts of `system.db` in their order, in the form of the import of users. What an import does not take stands only in
 * the lines of accounts that have it: `isAnonymous`, `phone`, `customClaims`.
 */
export function* accountsIn(system: Database): Generator<JsonObject> {
  const identities = system.query<IdentityRow, [string]>(
    "SELECT * FROM identities WHERE userId = ? ORDER BY createdAt, id",
  );
  for (const row of system.query<AccountRow, []>("SELECT * FROM users ORDER BY seq").iterate()) {
    yield accountOf(row, identities.all(row.id));
  }
}

function accountOf(row: AccountRow, identities: readonly IdentityRow[]): JsonObject {
  const { id, email, passwordHash, displayName, avatarUrl, language, phone, role } = row;
  const claims: JsonObject = JSON.parse(row.customClaims);
  const given = { passwordHash, displayName, avatarUrl, language, phone };
  return {
    id,
    email,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)),
    role,
    verified: row.emailVerified === 1,
    disabled: row.disabled === 1,
    emailVisibility: row.emailVisibility,
    createdAt: new Date(row.createdAt).toISOString(),
    metadata: JSON.parse(row.metadata),
    appMetadata: JSON.parse(row.appMetadata),
    ...(identities.length === 0 ? {} : { identities: identities.map(identityOf) }),
    ...(row.isAnonymous === 1 ? { isAnonymous: true } : {}),
    ...(Object.keys(claims).length === 0 ? {} : { customClaims: claims }),
  };
}

const identityOf = ({ provider, subject, email, emailVerified }: IdentityRow): JsonObject => ({
  provider,
  subject,
  ...(email === null ? {} : { email, emailVerified: emailVerified === 1 }),
});
