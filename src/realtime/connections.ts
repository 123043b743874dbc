import { AppError } from "../kernel/errors.ts";
import type { Connection, SignedIn } from "./connection.ts";
import { SOCKETS_PER_ADDRESS_MAX } from "./limits.ts";

/** Every open connection, counted by address and found by session. */
export interface Connections {
  /** Counts a connection that is about to open. Errors: 429 when its client (`clientNetwork`) has too many. */
  admit(client: string): void;
  /** The upgrade came to nothing. */
  withdraw(client: string): void;
  authenticated(connection: Connection, principal: SignedIn): void;
  closed(connection: Connection): void;
  ofSession(sessionId: string): readonly Connection[];
  ofUser(userId: string): readonly Connection[];
  all(): readonly Connection[];
  /** Open connections, those that wait for their `auth` included. */
  readonly count: number;
}

export function createConnections(): Connections {
  const openByClient = new Map<string, number>();
  const bySession = createIndex();
  const byUser = createIndex();
  const open = new Set<Connection>();
  let total = 0;

  const count = (client: string, change: 1 | -1): void => {
    const left = (openByClient.get(client) ?? 0) + change;
    total += change;
    if (left === 0) openByClient.delete(client);
    else openByClient.set(client, left);
  };
  return {
    admit(client) {
      if ((openByClient.get(client) ?? 0) >= SOCKETS_PER_ADDRESS_MAX) {
        throw new AppError(429, `At most ${SOCKETS_PER_ADDRESS_MAX} connections of one address may be open`);
      }
      count(client, 1);
    },
    withdraw: (client) => count(client, -1),
    authenticated(connection, principal) {
      if (connection.principal === null) {
        connection.releasePlace();
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
      const { client, principal } = connection;
      count(client, -1);
      connection.releasePlace();
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
