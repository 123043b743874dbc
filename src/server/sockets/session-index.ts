import type { Clock } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import { keyBehind, type Principal } from "../access/principal.ts";
import type { Principals } from "../access/principals.ts";

/** Index of authenticated connections: of users by session and by user, and of service keys. */
export class SessionIndex<Connection> {
  readonly #bySession = new Map<string, Set<Connection>>();
  readonly #byUser = new Map<string, Set<Connection>>();
  readonly ofKeys = new Set<Connection>();

  /** Counts distinct users. */
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

/** Interval between two checks of the connections' service keys. */
const KEYS_CHECKED_EVERY_MS = SECOND_MS;

/**
 * Ends connections whose service key, or its session, is no longer valid. Its timer runs only while there are `connections`: few
 * servers have any.
 */
export class KeyWatch<Connection extends { readonly principal: Principal | null }> {
  readonly #deps: {
    connections: ReadonlySet<Connection>;
    principals: Pick<Principals, "isPresent">;
    clock: Clock;
    end(connections: readonly Connection[]): void;
  };
  #cancel: (() => void) | null = null;

  constructor(deps: {
    connections: ReadonlySet<Connection>;
    principals: Pick<Principals, "isPresent">;
    clock: Clock;
    /** Ends connections whose keys are no longer valid. */
    end(connections: readonly Connection[]): void;
  }) {
    this.#deps = deps;
  }

  /** Starts the checks. Call it when a connection of a service key is added. */
  begin(): void {
    this.#cancel ??= this.#deps.clock.after(KEYS_CHECKED_EVERY_MS, () => this.#check());
  }

  stop(): void {
    this.#cancel?.();
  }

  #check(): void {
    this.#cancel = null;
    const { connections, principals } = this.#deps;
    this.#deps.end([...connections].filter(({ principal }) => principal !== null && !principals.isPresent(principal)));
    if (connections.size > 0) this.begin();
  }
}
