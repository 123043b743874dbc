import type { Clock } from "../kernel/clock.ts";
import { AppError } from "../kernel/errors.ts";
import { CLIENT_CHARS_AT_ONCE, CLIENT_CHARS_PER_SECOND } from "../sockets/limits.ts";
import { TokenBucket } from "../sockets/token-bucket.ts";
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
  /** Counts a long message of one connection against what its client network may send; false: it is over that. */
  takeChars(client: string, chars: number): boolean;
  ofSession(sessionId: string): readonly Connection[];
  ofUser(userId: string): readonly Connection[];
  all(): readonly Connection[];
  /** Open connections, those that wait for their `auth` included. */
  readonly count: number;
}

interface Client {
  open: number;
  readonly charRate: TokenBucket;
}

export function createConnections(clock: Clock): Connections {
  const clients = new Map<string, Client>();
  const bySession = createIndex();
  const byUser = createIndex();
  const open = new Set<Connection>();
  let total = 0;

  const clientOf = (name: string): Client => {
    const known = clients.get(name);
    if (known !== undefined) return known;
    const limits = { perSecond: CLIENT_CHARS_PER_SECOND, atOnce: CLIENT_CHARS_AT_ONCE };
    const client = { open: 0, charRate: new TokenBucket(limits, clock.now()) };
    clients.set(name, client);
    return client;
  };
  const count = (name: string, change: 1 | -1): void => {
    const client = clientOf(name);
    client.open += change;
    total += change;
    if (client.open === 0) clients.delete(name);
  };
  return {
    admit(client) {
      if ((clients.get(client)?.open ?? 0) >= SOCKETS_PER_ADDRESS_MAX) {
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
    takeChars: (client, chars) => clientOf(client).charRate.take(chars, clock.now()),
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
