import { BoundedMap } from "../../../kernel/bounded-map.ts";
import type { Clock } from "../../../kernel/clock.ts";
import type { Accounts } from "../../access/accounts.ts";
import type { SessionLookup } from "../../access/sessions.ts";
import type { KeptState } from "../../db/readers/read-cut.ts";
import type { ReaderFile } from "../../db/readers/reader-file.ts";
import { SESSIONS_KEPT_MAX } from "./limits.ts";
import { type LiveSession, liveSession } from "./statements/sessions.ts";
import { userById } from "./statements/users.ts";

/**
 * Looks sessions up in the file, for a process that learns of their end by nothing else. A session is kept for as long as nothing is
 * committed to the file, which each look asks the shared page.
 */
export function createSessionReads({ file, clock }: { file: ReaderFile; clock: Clock }): SessionLookup {
  const kept = new BoundedMap<string, { session: LiveSession; state: KeptState }>(SESSIONS_KEPT_MAX);
  const read = (id: string): LiveSession | null => {
    const known = kept.get(id);
    if (known !== undefined && file.keeps(known.state)) return known.session;
    const session = liveSession.get(file, { id });
    const state = file.state();
    if (session !== null && state !== null) kept.set(id, { session, state });
    return session;
  };
  return {
    find(sessionId, userId) {
      const session = read(sessionId);
      return session === null || session.userId !== userId || session.expiresAt <= clock.now() ? null : session;
    },
  };
}

/** Looks accounts up in the file, for signed URLs. */
export const createAccountReads =
  (file: ReaderFile): Accounts["get"] =>
  (id) => {
    const account = userById.get(file, { id });
    if (account === null) return null;
    // The hash never leaves the area.
    const { passwordHash: _, ...shown } = account;
    return shown;
  };
