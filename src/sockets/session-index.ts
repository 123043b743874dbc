import type { Visiting } from "./connection.ts";

/** Finds authenticated connections by their session and their user. Those without a user have neither. */
export class SessionIndex<Connection> {
  readonly #bySession = new Map<string, Set<Connection>>();
  readonly #byUser = new Map<string, Set<Connection>>();

  add(connection: Connection, principal: Visiting): void {
    if (principal.kind === "anonymous") return;
    addTo(this.#bySession, principal.sessionId, connection);
    addTo(this.#byUser, principal.auth.id, connection);
  }

  delete(connection: Connection, principal: Visiting): void {
    if (principal.kind === "anonymous") return;
    deleteFrom(this.#bySession, principal.sessionId, connection);
    deleteFrom(this.#byUser, principal.auth.id, connection);
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
