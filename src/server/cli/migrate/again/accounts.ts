import { Database } from "bun:sqlite";
import { systemIds } from "../../../../kernel/ids.ts";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import { emailOf } from "../../../config/shapes/user-fields.ts";
import type { Account } from "../load/accounts.ts";
import type { Remarks } from "../remarks.ts";
import type { Prints } from "./contents.ts";
import { printOf } from "./state.ts";

/** Names of the two parts of accounts, which are decided on by themselves. */
export const ACCOUNT_PARTS = { facts: ":accounts", passwords: ":passwords" } as const;

interface Facts {
  email: string | null;
  displayName: string | null;
  role: string;
  verified: boolean;
  disabled: boolean;
  emailVisibility: string;
  /** `provider:subject`, in order. */
  identities: readonly string[];
  metadata: JsonValue;
  appMetadata: JsonValue;
}

const keyOf = (provider: unknown, subject: unknown): string => `${String(provider)}:${String(subject)}`;

function factsOf(account: Account): Facts {
  const { email, displayName, role, emailVisibility, identities, metadata, appMetadata } = account;
  const list = Array.isArray(identities) ? (identities as JsonObject[]) : [];
  return {
    email: emailOf(email),
    displayName: typeof displayName === "string" ? displayName : null,
    role: typeof role === "string" ? role : "user",
    verified: account["verified"] === true,
    disabled: account["disabled"] === true,
    emailVisibility: typeof emailVisibility === "string" ? emailVisibility : "private",
    identities: list.map(({ provider, subject }) => keyOf(provider, subject)).sort(),
    metadata: metadata ?? {},
    appMetadata: appMetadata ?? {},
  };
}

// A value of this form has members of JSON alone.
const printOfFacts = (facts: Facts) => printOf(facts as unknown as JsonObject);

/** Returns the hashes of the accounts of a source: facts, and passwords. */
export function accountsThere(accounts: readonly Account[]): { facts: Prints; passwords: Prints } {
  return {
    facts: new Map(accounts.map((account) => [account.id, printOfFacts(factsOf(account))])),
    passwords: new Map(
      accounts.map(({ id, passwordHash = null }) => [id, printOf({ passwordHash: passwordHash ?? null })]),
    ),
  };
}

type Row = Record<string, JsonValue>;

/** Reads the hashes of the accounts of a stopped server. */
export function accountsHere(file: string): { facts: Prints; passwords: Prints } {
  const sqlite = new Database(file, { readonly: true });
  try {
    const identities = new Map<string, string[]>();
    for (const row of sqlite.query<Row, []>("SELECT userId, provider, subject FROM identities").iterate()) {
      const user = String(row["userId"]);
      identities.set(user, [...(identities.get(user) ?? []), keyOf(row["provider"], row["subject"])]);
    }
    const [facts, passwords] = [new Map(), new Map()];
    for (const row of sqlite.query<Row, []>("SELECT * FROM users").iterate()) {
      const id = String(row["id"]);
      const { email = null, displayName = null, role, emailVisibility, passwordHash = null } = row;
      const found: Facts = {
        email: email === null ? null : String(email),
        displayName: displayName === null ? null : String(displayName),
        role: String(role),
        verified: row["emailVerified"] === 1,
        disabled: row["disabled"] === 1,
        emailVisibility: String(emailVisibility),
        identities: (identities.get(id) ?? []).sort(),
        // Stored as JSON.
        metadata: JSON.parse(String(row["metadata"])) as JsonValue,
        appMetadata: JSON.parse(String(row["appMetadata"])) as JsonValue,
      };
      facts.set(id, printOfFacts(found));
      passwords.set(id, printOf({ passwordHash }));
    }
    return { facts, passwords };
  } finally {
    sqlite.close();
  }
}

/**
 * Updates accounts of a stopped server to what they are there. Their sessions end, and codes that were mailed. Returns the ids of those
 * that could not be.
 */
export function updateAccounts(
  file: string,
  accounts: readonly Account[],
  {
    facts,
    passwords,
    now,
    remarks,
  }: { facts: ReadonlySet<string>; passwords: ReadonlySet<string>; now: number; remarks: Remarks },
): Set<string> {
  const refused = new Set<string>();
  const sqlite = new Database(file, { readwrite: true });
  try {
    sqlite.run("PRAGMA foreign_keys = ON");
    for (const account of accounts) {
      const { id } = account;
      if (!facts.has(id) && !passwords.has(id)) continue;
      try {
        sqlite.transaction(() => {
          if (facts.has(id)) updateFacts(sqlite, id, factsOf(account), now);
          if (passwords.has(id)) {
            const { passwordHash = null } = account;
            sqlite.run("UPDATE users SET passwordHash = ? WHERE id = ?", [passwordHash as string | null, id]);
          }
          for (const table of ["sessions", "one_time_secrets"])
            sqlite.run(`DELETE FROM ${table} WHERE userId = ?`, [id]);
          // The record of the account follows it at the next start.
          sqlite.run("UPDATE user_records SET lastMark = lastMark + 1");
          sqlite.run(
            "INSERT INTO user_marks (userId, mark) SELECT ?, lastMark FROM user_records WHERE true ON CONFLICT (userId) DO UPDATE SET mark = excluded.mark",
            [id],
          );
        })();
      } catch (cause) {
        refused.add(id);
        remarks.lost("accounts", `the changes of the account ${id} (${account.email}): ${String(cause)}`);
      }
    }
  } finally {
    sqlite.close();
  }
  return refused;
}

function updateFacts(sqlite: Database, id: string, facts: Facts, now: number): void {
  const { email, displayName, role, verified, disabled, emailVisibility, identities, metadata, appMetadata } = facts;
  sqlite.run(
    `UPDATE users SET email = ?, displayName = ?, role = ?, emailVerified = ?, disabled = ?, emailVisibility = ?, metadata = ?,
     appMetadata = ?, updatedAt = ? WHERE id = ?`,
    [
      ...[email, displayName, role, verified ? 1 : 0, disabled ? 1 : 0, emailVisibility],
      ...[JSON.stringify(metadata), JSON.stringify(appMetadata), now, id],
    ],
  );
  const stored = sqlite
    .query<{ id: string; key: string }, [string]>(
      "SELECT id, provider || ':' || subject AS key FROM identities WHERE userId = ?",
    )
    .all(id);
  for (const { id: identity, key } of stored) {
    if (!identities.includes(key)) sqlite.run("DELETE FROM identities WHERE id = ?", [identity]);
  }
  for (const key of identities.filter((wanted) => !stored.some((one) => one.key === wanted))) {
    const [provider = ""] = key.split(":", 1);
    sqlite.run(
      "INSERT INTO identities (id, userId, provider, subject, createdAt, lastSignInAt, emailVerified) VALUES (?, ?, ?, ?, ?, ?, 0)",
      [systemIds.uuid(), id, provider, key.slice(provider.length + 1), now, now],
    );
  }
}
