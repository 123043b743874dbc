import type { SignedIn } from "./connection.ts";

/** Finds authenticated connections by their session and their user. */
export class SessionIndex<Connection> {
  readonly #bySession = new Map<string, Set<Connection>>();
  readonly #byUser = new Map<string, Set<Connection>>();

  add(connection: Connection, { sessionId, auth }: SignedIn): void {
    addTo(this.#bySession, sessionId, connection);
    addTo(this.#byUser, auth.id, connection);
  }

  delete(connection: Connection, { sessionId, auth }: SignedIn): void {
    deleteFrom(this.#bySession, sessionId, connection);
    deleteFrom(this.#byUser, auth.id, connection);
  }

  ofSession(sessionId: string): readonly Connection[] {
    return [...(this.#bySession.get(sessionId) ?? [])];
  }

  ofUser(userId: string): readonly Connection[] {
    return [...(this.#byUser.get(userId) ?? [])];
  }
}

function addTo<Value>(sets: Map<string, Set<Value>>, key: string, value: Value): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function deleteFrom<Value>(sets: Map<string, Set<Value>>, key: string, value: Value): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}
