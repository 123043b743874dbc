import type { SessionEvents, SessionLookup, UserEvents } from "../access/sessions.ts";
import type { MessageTurns } from "../sockets/message-turns.ts";
import { CLOSE, type Connection } from "./connection.ts";
import type { Connections } from "./connections.ts";
import type { Operations } from "./operations.ts";

/** Live connections follow what happens to their session and user. The function returned ends it. Decisions 6 and 10. */
export function watchSessions(deps: {
  connections: Connections;
  operations: Operations;
  sessions: SessionEvents & SessionLookup & UserEvents;
  turns: MessageTurns;
  onFailure(connection: Connection, cause: unknown): void;
}): () => void {
  const { connections, operations, sessions } = deps;

  /** A role counts at once, also for what one has subscribed to. */
  const follow = async (connection: Connection): Promise<void> => {
    const { principal } = connection;
    if (principal === null || connection.isClosed) return;
    const state = sessions.find(principal.sessionId, principal.auth.id);
    if (state === null) return;
    const { role, email, emailVerified, isAnonymous } = state;
    const present = { ...principal, auth: { ...principal.auth, role, email, emailVerified, isAnonymous } };
    connections.authenticated(connection, present);
    const revokedChannels = await operations.refresh(connection, present);
    if (revokedChannels.length === 0) return;
    connection.send({ type: "auth_refreshed", userId: principal.auth.id, revokedChannels });
  };

  const unlistenChanges = sessions.onUserChange((userId) => {
    for (const connection of connections.ofUser(userId)) {
      deps.turns.add(connection, () => follow(connection).catch((cause) => deps.onFailure(connection, cause)));
    }
  });
  const unlistenEnds = sessions.onEnd((sessionId) => {
    const message = "The session has ended";
    for (const connection of connections.ofSession(sessionId)) {
      connection.send({ type: "error", code: "SESSION_REVOKED", message });
      connection.end(CLOSE.session, message);
    }
  });
  return () => {
    unlistenChanges();
    unlistenEnds();
  };
}
