import { AppError } from "../kernel/errors.ts";
import type { Connection, SignedIn } from "./connection.ts";
import { PENDING_PER_ADDRESS_MAX, SOCKETS_PER_ADDRESS_MAX } from "./limits.ts";

/** Every open connection, counted by address and found by session. */
export interface Connections {
  /** Counts a connection that is about to open. Errors: 429 when its address has too many. Decisions 10. */
  admit(address: string): void;
  /** The upgrade came to nothing. */
  withdraw(address: string): void;
  authenticated(connection: Connection, principal: SignedIn): void;
  closed(connection: Connection): void;
  ofSession(sessionId: string): readonly Connection[];
  all(): readonly Connection[];
}

export function createConnections(): Connections {
  const byAddress = new Map<string, { open: number; pending: number }>();
  const bySession = new Map<string, Set<Connection>>();
  const open = new Set<Connection>();

  const count = (address: string, change: { open: number; pending: number }): void => {
    const counts = byAddress.get(address) ?? { open: 0, pending: 0 };
    byAddress.set(address, counts);
    counts.open += change.open;
    counts.pending += change.pending;
    if (counts.open === 0) byAddress.delete(address);
  };
  const forgetSession = (connection: Connection): void => {
    const sessionId = connection.principal?.sessionId;
    if (sessionId === undefined) return;
    const ofSession = bySession.get(sessionId);
    ofSession?.delete(connection);
    if (ofSession?.size === 0) bySession.delete(sessionId);
  };

  return {
    admit(address) {
      const counts = byAddress.get(address);
      if (counts !== undefined && counts.pending >= PENDING_PER_ADDRESS_MAX) {
        throw new AppError(429, `At most ${PENDING_PER_ADDRESS_MAX} connections of one address may be unauthenticated`);
      }
      if (counts !== undefined && counts.open >= SOCKETS_PER_ADDRESS_MAX) {
        throw new AppError(429, `At most ${SOCKETS_PER_ADDRESS_MAX} connections of one address may be open`);
      }
      count(address, { open: 1, pending: 1 });
    },
    withdraw: (address) => count(address, { open: -1, pending: -1 }),
    authenticated(connection, principal) {
      if (connection.principal === null) {
        count(connection.address, { open: 0, pending: -1 });
        connection.cancelAuthTimeout?.();
        connection.cancelAuthTimeout = null;
        open.add(connection);
      }
      forgetSession(connection);
      connection.principal = principal;
      const ofSession = bySession.get(principal.sessionId);
      if (ofSession === undefined) bySession.set(principal.sessionId, new Set([connection]));
      else ofSession.add(connection);
    },
    closed(connection) {
      count(connection.address, { open: -1, pending: connection.principal === null ? -1 : 0 });
      forgetSession(connection);
      open.delete(connection);
    },
    ofSession: (sessionId) => [...(bySession.get(sessionId) ?? [])],
    all: () => [...open],
  };
}
