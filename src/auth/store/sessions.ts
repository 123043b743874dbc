import type { PresentSession } from "../../access/sessions.ts";
import type { Millis } from "../../kernel/clock.ts";
import type { Sql } from "./sql.ts";

export interface SessionRow {
  id: string;
  userId: string;
  createdAt: Millis;
  lastUsedAt: Millis;
  expiresAt: Millis;
  ip: string | null;
  userAgent: string | null;
  /** Of the refresh token that counts. */
  generation: number;
  /** When the generations before it were replaced, newest first. */
  rotations: Millis[];
  /** When the user last proved who they are: a sign-in, or the password. A refresh proves nothing. */
  provedAt: Millis;
  /** Of the access tokens that count. */
  tokenVersion: number;
}

type StoredSession = Omit<SessionRow, "rotations"> & { rotations: string };

// What the store wrote itself is an array of numbers.
const toSession = (row: StoredSession): SessionRow => ({ ...row, rotations: JSON.parse(row.rotations) as Millis[] });

/** The user has just proved who they are. */
export function insertSession(
  sql: Sql,
  session: Omit<SessionRow, "generation" | "rotations" | "provedAt" | "tokenVersion">,
): void {
  sql
    .query(
      `INSERT INTO sessions (id, userId, createdAt, lastUsedAt, expiresAt, ip, userAgent, provedAt)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?3)`,
    )
    .run(
      session.id,
      session.userId,
      session.createdAt,
      session.lastUsedAt,
      session.expiresAt,
      session.ip,
      session.userAgent,
    );
}

export function sessionById(sql: Sql, id: string): SessionRow | null {
  const row = sql.query<StoredSession>("SELECT * FROM sessions WHERE id = ?").get(id);
  return row === null ? null : toSession(row);
}

/** Newest first. */
export function newestSessions(sql: Sql, userId: string, limit: number): SessionRow[] {
  return sql
    .query<StoredSession>("SELECT * FROM sessions WHERE userId = ? ORDER BY createdAt DESC, id DESC LIMIT ?")
    .all(userId, limit)
    .map(toSession);
}

export function countSessions(sql: Sql, userId: string): number {
  return (
    sql.query<{ count: number }>("SELECT count(*) AS count FROM sessions WHERE userId = ?").get(userId)?.count ?? 0
  );
}

/** Ends the first of a user's sessions, by when they began or were last used; gives their ids. */
export function deleteFirstSessions(
  sql: Sql,
  userId: string,
  order: "createdAt" | "lastUsedAt",
  count: number,
): string[] {
  return sql
    .query<{ id: string }>(
      `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE userId = ? ORDER BY ${order}, id LIMIT ?) RETURNING id`,
    )
    .all(userId, count)
    .map((row) => row.id);
}

export interface LiveSession extends PresentSession {
  userId: string;
  expiresAt: Millis;
}

type LiveRow = Omit<LiveSession, "emailVerified" | "isAnonymous"> & { emailVerified: number; isAnonymous: number };

/** What a request with a token of this session has to know; null when the session has ended. */
export function liveSession(sql: Sql, id: string): LiveSession | null {
  const row = sql
    .query<LiveRow>(
      `SELECT s.userId, s.expiresAt, s.tokenVersion, u.role, u.email, u.emailVerified, u.isAnonymous
       FROM sessions s JOIN users u ON u.id = s.userId WHERE s.id = ?`,
    )
    .get(id);
  if (row === null) return null;
  return { ...row, emailVerified: row.emailVerified === 1, isAnonymous: row.isAnonymous === 1 };
}

export function touchSession(
  sql: Sql,
  session: Pick<SessionRow, "id" | "lastUsedAt" | "expiresAt" | "ip" | "userAgent" | "generation" | "rotations">,
): void {
  sql
    .query(
      `UPDATE sessions SET lastUsedAt = ?, expiresAt = ?, ip = ?, userAgent = ?, generation = ?, rotations = ? WHERE id = ?`,
    )
    .run(
      session.lastUsedAt,
      session.expiresAt,
      session.ip,
      session.userAgent,
      session.generation,
      JSON.stringify(session.rotations),
      session.id,
    );
}

/** The user has just proved who they are with a new password: access tokens of before count no longer. */
export function renewSession(sql: Sql, id: string, now: Millis, tokenVersion: number): void {
  sql.query("UPDATE sessions SET provedAt = ?, tokenVersion = ? WHERE id = ?").run(now, tokenVersion, id);
}

export function deleteSession(sql: Sql, id: string): boolean {
  return sql.query("DELETE FROM sessions WHERE id = ?").run(id).changes > 0;
}

/** Ends all of a user's sessions but `exceptId`; gives the ids of those that ended. */
export function deleteSessionsOfUser(sql: Sql, userId: string, exceptId: string | null): string[] {
  return sql
    .query<{ id: string }>("DELETE FROM sessions WHERE userId = ? AND id IS NOT ? RETURNING id")
    .all(userId, exceptId)
    .map((row) => row.id);
}

/** Whether anything waits for `deleteExpiredSessions`. */
export function hasExpiredSessions(sql: Sql, now: Millis): boolean {
  return sql.query("SELECT 1 FROM sessions WHERE expiresAt <= ? LIMIT 1").get(now) !== null;
}

/** At most `limit`, so that one clean-up never holds up other writes for long. */
export function deleteExpiredSessions(sql: Sql, now: Millis, limit: number): string[] {
  return sql
    .query<{ id: string }>(
      "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expiresAt <= ? LIMIT ?) RETURNING id",
    )
    .all(now, limit)
    .map((row) => row.id);
}
