import type { Clock } from "../../../kernel/clock.ts";
import type { SessionLookup } from "../../access/sessions.ts";
import type { Readable } from "../../db/query.ts";
import { liveSession } from "./statements/sessions.ts";

/** Looks sessions up in the file alone, for a process that learns of their end by nothing else. */
export const createSessionReads = ({ sql, clock }: { sql: Readable; clock: Clock }): SessionLookup => ({
  find(sessionId, userId) {
    const session = liveSession.get(sql, { id: sessionId });
    return session === null || session.userId !== userId || session.expiresAt <= clock.now() ? null : session;
  },
});
