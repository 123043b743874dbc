import type { Readable } from "../../../db/query.ts";
import { type SessionRow, sessionById } from "../statements/sessions.ts";

/** The session that a request's access token belongs to. */
export interface Caller {
  userId: string;
  sessionId: string;
  /** Of the access token. */
  tokenVersion: number;
}

/** null: it has ended, or a new password has ended the caller's access token. */
export function sessionOf(sql: Readable, { userId, sessionId, tokenVersion }: Caller): SessionRow | null {
  const session = sessionById.get(sql, { id: sessionId });
  return session?.userId === userId && session.tokenVersion === tokenVersion ? session : null;
}
