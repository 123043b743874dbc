import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { KNOWN_PROVIDERS } from "../../../config/sections/oauth-providers.ts";
import type { Account } from "../load/accounts.ts";
import type { Remarks } from "../remarks.ts";
import type { PgRow, PgSource } from "./source.ts";
import { valueIn } from "./values.ts";

const RENAMED: Readonly<Record<string, string>> = {
  azure: "microsoft",
  twitter: "x",
  linkedin_oidc: "linkedin",
  slack_oidc: "slack",
};
/** Providers that need more than an id and a secret. */
const UNMOVABLE: ReadonlySet<string> = new Set(["apple", "salesforce"]);
const DISPLAY_NAME_MAX_CHARACTERS = 256;

const USERS = { schema: "auth", name: "users" };
const IDENTITIES = { schema: "auth", name: "identities" };

/** Accounts of a source, before any is imported. */
export interface MovedAccounts {
  accounts: readonly Account[];
  /** Names of `auth.oauth` with which somebody signs in. */
  providers: readonly string[];
  /** Whether somebody has an address that is not confirmed, and so does not sign in there. */
  hasUnconfirmed: boolean;
}

const instant = (text: string | null | undefined): string | null => {
  const value = valueIn("datetime", "timestamptz", text ?? null);
  return typeof value === "string" ? value : null;
};

const jsonOf = (text: string | null | undefined): JsonObject => {
  const value: unknown = JSON.parse(text ?? "{}");
  return isJsonObject(value) ? value : {};
};

/** Reads the accounts with their identities. `now`: whoever is banned for longer is disabled. */
export function accountsOf(source: PgSource, now: number, remarks: Remarks): MovedAccounts {
  const identities = new Map<string, JsonObject[]>();
  const providers = new Set<string>();
  for (const row of source.rows(IDENTITIES)) {
    const there = row["provider"] ?? "";
    if (there === "email" || there === "phone") continue;
    const provider = RENAMED[there] ?? there;
    if (!KNOWN_PROVIDERS.some((known) => known === provider) || UNMOVABLE.has(provider)) {
      remarks.lost(
        "auth.identities",
        `identities of ${there}: add it to auth.oauth, and its accounts are found by their address`,
      );
      continue;
    }
    const data = jsonOf(row["identity_data"]);
    const subject = row["provider_id"] ?? (typeof data["sub"] === "string" ? data["sub"] : "");
    if (subject === "") continue;
    providers.add(provider);
    const user = row["user_id"] ?? "";
    identities.set(user, [...(identities.get(user) ?? []), { provider, subject }]);
  }
  const taken = new Map<string, Account>();
  for (const row of source.rows(USERS)) {
    const account = accountOf(row, identities.get(row["id"] ?? "") ?? [], now);
    const other = account.email === "" ? undefined : taken.get(account.email.toLowerCase());
    if (account.email === "") remarks.lost("auth.users", `the account ${account.id}, which has no address`);
    else if (other !== undefined) remarks.lost("auth.users", `the account ${account.id}: ${other.id} has its address`);
    else taken.set(account.email.toLowerCase(), account);
  }
  const accounts = [...taken.values()];
  return {
    accounts,
    providers: [...providers].sort(),
    hasUnconfirmed: accounts.some((one) => one["verified"] === false),
  };
}

function accountOf(row: PgRow, identities: readonly JsonObject[], now: number): Account {
  const metadata = jsonOf(row["raw_user_meta_data"]);
  const name = [metadata["full_name"], metadata["name"]].find((one) => typeof one === "string" && one !== "");
  const hash = row["encrypted_password"] ?? "";
  const createdAt = instant(row["created_at"]);
  const bannedUntil = instant(row["banned_until"]);
  const isBanned = row["banned_until"] === "infinity" || (bannedUntil !== null && Date.parse(bannedUntil) > now);
  return {
    id: row["id"] ?? "",
    email: row["email"] ?? "",
    ...(hash === "" ? {} : { passwordHash: hash }),
    ...(name === undefined ? {} : { displayName: [...String(name)].slice(0, DISPLAY_NAME_MAX_CHARACTERS).join("") }),
    verified: (row["email_confirmed_at"] ?? row["confirmed_at"] ?? null) !== null,
    disabled: isBanned || (row["deleted_at"] ?? null) !== null,
    ...(createdAt === null ? {} : { createdAt }),
    metadata,
    appMetadata: jsonOf(row["raw_app_meta_data"]),
    ...(identities.length === 0 ? {} : { identities: [...identities] }),
  };
}
