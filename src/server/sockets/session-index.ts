import { keyBehind, type Principal } from "../access/principal.ts";

/** Finds authenticated connections: of users by their session and their user, and those with a service key behind them. */
export class SessionIndex<Connection> {
  readonly #bySession = new Map<string, Set<Connection>>();
  readonly #byUser = new Map<string, Set<Connection>>();
  readonly ofKeys = new Set<Connection>();

  /** Different users. */
  get userCount(): number {
    return this.#byUser.size;
  }

  add(connection: Connection, principal: Principal): void {
    if (keyBehind(principal) !== null) this.ofKeys.add(connection);
    if (principal.kind !== "user") return;
    addTo(this.#bySession, principal.sessionId, connection);
    addTo(this.#byUser, principal.auth.id, connection);
  }

  delete(connection: Connection, principal: Principal): void {
    this.ofKeys.delete(connection);
    if (principal.kind !== "user") return;
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
