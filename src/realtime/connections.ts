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
  ofUser(userId: string): readonly Connection[];
  all(): readonly Connection[];
  /** Open connections, those that wait for their `auth` included. */
  readonly count: number;
}

export function createConnections(): Connections {
  const byAddress = new Map<string, { open: number; pending: number }>();
  const bySession = createIndex();
  const byUser = createIndex();
  const open = new Set<Connection>();
  let total = 0;

  const count = (address: string, change: { open: number; pending: number }): void => {
    const counts = byAddress.get(address) ?? { open: 0, pending: 0 };
    byAddress.set(address, counts);
    counts.open += change.open;
    total += change.open;
    counts.pending += change.pending;
    if (counts.open === 0) byAddress.delete(address);
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
      } else {
        bySession.delete(connection.principal.sessionId, connection);
      }
      connection.principal = principal;
      bySession.add(principal.sessionId, connection);
      byUser.add(principal.auth.id, connection);
    },
    closed(connection) {
      const { address, principal } = connection;
      count(address, { open: -1, pending: principal === null ? -1 : 0 });
      if (principal === null) return;
      bySession.delete(principal.sessionId, connection);
      byUser.delete(principal.auth.id, connection);
      open.delete(connection);
    },
    ofSession: bySession.get,
    ofUser: byUser.get,
    all: () => [...open],
    get count() {
      return total;
    },
  };
}

function createIndex() {
  const sets = new Map<string, Set<Connection>>();
  return {
    add(key: string, connection: Connection): void {
      const set = sets.get(key);
      if (set === undefined) sets.set(key, new Set([connection]));
      else set.add(connection);
    },
    delete(key: string, connection: Connection): void {
      const set = sets.get(key);
      set?.delete(connection);
      if (set?.size === 0) sets.delete(key);
    },
    get: (key: string): readonly Connection[] => [...(sets.get(key) ?? [])],
  };
}
