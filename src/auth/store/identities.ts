import type { Millis } from "../../kernel/clock.ts";
import type { Sql } from "./sql.ts";

export interface Identity {
  id: string;
  userId: string;
  provider: string;
  /** The user's id at the provider. */
  subject: string;
  email: string | null;
  createdAt: Millis;
  lastSignInAt: Millis;
}

export function identityBySubject(sql: Sql, provider: string, subject: string): Identity | null {
  return sql.query<Identity>("SELECT * FROM identities WHERE provider = ? AND subject = ?").get(provider, subject);
}

export function identitiesOfUser(sql: Sql, userId: string): Identity[] {
  return sql.query<Identity>("SELECT * FROM identities WHERE userId = ? ORDER BY createdAt, id").all(userId);
}

export function insertIdentity(sql: Sql, identity: Omit<Identity, "lastSignInAt">): void {
  sql
    .query(
      `INSERT INTO identities (id, userId, provider, subject, email, createdAt, lastSignInAt)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)`,
    )
    .run(identity.id, identity.userId, identity.provider, identity.subject, identity.email, identity.createdAt);
}

export function touchIdentity(sql: Sql, id: string, email: string | null, now: Millis): void {
  sql.query("UPDATE identities SET email = ?, lastSignInAt = ? WHERE id = ?").run(email, now, id);
}

export function deleteIdentity(sql: Sql, id: string): void {
  sql.query("DELETE FROM identities WHERE id = ?").run(id);
}
