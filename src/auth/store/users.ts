import type { Account, AccountChanges, NewAccount } from "../../access/accounts.ts";
import type { Millis } from "../../kernel/clock.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { deletePasskeysOfUser } from "./passkeys.ts";
import type { Sql } from "./sql.ts";

interface UserRow {
  seq: number;
  id: string;
  email: string | null;
  emailVerified: number;
  emailVisibility: "public" | "private";
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
  updatedAt: number;
}

/** An account with its password's hash: never leaves the area. */
export interface SecretAccount extends Account {
  passwordHash: string | null;
}

// What the store wrote itself is an object.
const parseObject = (text: string): JsonObject => (text === "{}" ? {} : (JSON.parse(text) as JsonObject));

function toAccount(row: UserRow): SecretAccount {
  return {
    ...row,
    emailVerified: row.emailVerified === 1,
    isAnonymous: row.isAnonymous === 1,
    disabled: row.disabled === 1,
    metadata: parseObject(row.metadata),
    appMetadata: parseObject(row.appMetadata),
    customClaims: parseObject(row.customClaims),
  };
}

export function userById(sql: Sql, id: string): SecretAccount | null {
  const row = sql.query<UserRow>("SELECT * FROM users WHERE id = ?").get(id);
  return row === null ? null : toAccount(row);
}

export function userByEmail(sql: Sql, email: string): SecretAccount | null {
  const row = sql.query<UserRow>("SELECT * FROM users WHERE email = ?").get(email);
  return row === null ? null : toAccount(row);
}

export type UserInsert = Omit<NewAccount, "id" | "email" | "password"> & {
  id: string;
  email: string | null;
  isAnonymous?: boolean;
  now: Millis;
};

const INSERT = `INSERT INTO users (id, email, emailVerified, passwordHash, displayName, avatarUrl, role, isAnonymous,
  metadata, appMetadata, createdAt, updatedAt) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)`;

/** A row that is ready to be inserted: its JSON is written. */
export type PreparedUser = readonly (string | number | boolean | null)[];

export const prepareUser = (user: UserInsert): PreparedUser => [
  user.id,
  user.email,
  user.emailVerified === true,
  user.passwordHash ?? null,
  user.displayName ?? null,
  user.avatarUrl ?? null,
  user.role ?? "user",
  user.isAnonymous === true,
  JSON.stringify(user.metadata ?? {}),
  JSON.stringify(user.appMetadata ?? {}),
  user.now,
];

/** Many at once; the caller has made sure that neither ids nor emails are taken. */
export function insertPrepared(sql: Sql, users: readonly PreparedUser[]): void {
  const insert = sql.query(INSERT);
  for (const user of users) insert.run(...user);
}

/** The caller has made sure that neither id nor email is taken. */
export function insertUser(sql: Sql, user: UserInsert): SecretAccount {
  const row = sql.query<UserRow>(`${INSERT} RETURNING *`).get(...prepareUser(user));
  if (row === null) throw new Error("INSERT RETURNING gave no row");
  return toAccount(row);
}

export type UserChanges = AccountChanges & {
  email?: string | undefined;
  emailVerified?: boolean | undefined;
  passwordHash?: string | undefined;
  isAnonymous?: boolean | undefined;
};

/** Columns are named here, never by a request. */
const COLUMNS = [
  "email",
  "emailVerified",
  "emailVisibility",
  "passwordHash",
  "displayName",
  "avatarUrl",
  "role",
  "isAnonymous",
  "disabled",
  "metadata",
  "appMetadata",
  "customClaims",
] as const satisfies readonly (keyof UserChanges)[];

/** Absent members stay. The user exists. */
export function updateUser(sql: Sql, id: string, changes: UserChanges, now: Millis): SecretAccount {
  const assignments: string[] = ["updatedAt = ?"];
  const values: (string | number | boolean | null)[] = [now];
  for (const column of COLUMNS) {
    const value = changes[column];
    if (value === undefined) continue;
    assignments.push(`${column} = ?`);
    values.push(typeof value === "object" && value !== null ? JSON.stringify(value) : value);
  }
  const row = sql
    .query<UserRow>(`UPDATE users SET ${assignments.join(", ")} WHERE id = ? RETURNING *`)
    .get(...values, id);
  if (row === null) throw new Error(`user ${id} vanished within a transaction`);
  return toAccount(row);
}

/** Sessions, factors, identities and passkeys go with it. */
export function deleteUser(sql: Sql, id: string): boolean {
  return sql.query("DELETE FROM users WHERE id = ?").run(id).changes > 0;
}

/** Takes away what somebody may have set before the address was proved: password, identities, passkeys. */
export function clearUnprovenCredentials(sql: Sql, id: string): void {
  sql.query("UPDATE users SET passwordHash = NULL WHERE id = ?").run(id);
  sql.query("DELETE FROM identities WHERE userId = ?").run(id);
  deletePasskeysOfUser(sql, id);
}
