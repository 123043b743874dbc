import type { Clock } from "../../kernel/clock.ts";
import { serverStopping } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Logger } from "../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../kernel/maybe-promise.ts";
import { clientNetwork } from "../../kernel/network/addresses.ts";
import type { Scheduler } from "../../kernel/time/scheduler.ts";
import type { Principals } from "../access/principals.ts";
import type { SessionEvents, SessionLookup, UserEvents } from "../access/sessions.ts";
import { createAuthentication } from "./authentication.ts";
import type { Clients } from "./clients.ts";
import { Connection, type ConnectionEvents, type ConnectionLimits } from "./connection.ts";
import { FollowUps } from "./follow-ups.ts";
import { CLOSE } from "./limits.ts";
import type { MessageTurns } from "./message-turns.ts";
import type { PendingPlaces, Release } from "./pending-places.ts";
import { Answers, type Protocol } from "./protocol.ts";
import { createReceiving } from "./receiving.ts";
import { KeyWatch, SessionIndex } from "./session-index.ts";
import type { SocketServer } from "./socket-server.ts";

export interface OpeningRequest {
  readonly request: Request;
  /** Returns the client's address. */
  address(): string;
}

export interface Opening<State> {
  limits: ConnectionLimits;
  /** Bounds the unauthenticated connections, this one included. */
  places: PendingPlaces;
  /** Creates the area's state for the connection. Called once the connection has its place. */
  state(): State;
}

interface AreaSocketsDeps {
  server: SocketServer;
  principals: Pick<Principals, "ofToken" | "ofTicket" | "isPresent">;
  sessions: SessionLookup & SessionEvents & UserEvents;
  clients: Clients;
  turns: MessageTurns;
  slices: Scheduler;
  followUps: Scheduler;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** Address of a connection, and its client network. */
type Origin = { readonly address: string; readonly client: string };

/** The WebSocket connections of one area. */
export class AreaSockets<State> implements ConnectionEvents<State> {
  readonly #protocol: Protocol<State>;
  readonly #deps: AreaSocketsDeps;
  readonly #connections = new Set<Connection<State>>();
  readonly #index = new SessionIndex<Connection<State>>();
  readonly #answers: Answers<State>;
  readonly #followUps: FollowUps<State>;
  readonly #keyWatch: KeyWatch<Connection<State>>;
  readonly #receive: (connection: Connection<State>, raw: string | Buffer) => void;
  readonly #unwatch: () => void;
  #isRefusing = false;

  constructor(protocol: Protocol<State>, deps: AreaSocketsDeps) {
    this.#protocol = protocol;
    this.#deps = deps;
    this.#answers = new Answers(protocol, deps.logger);
    const parts = { ...deps, protocol, answers: this.#answers, index: this.#index };
    const followUps = new FollowUps(parts);
    this.#followUps = followUps;
    const end = (connections: readonly Connection<State>[]): void => followUps.end(connections);
    const keyWatch = new KeyWatch({ ...deps, connections: this.#index.ofKeys, end });
    this.#keyWatch = keyWatch;
    const authenticate = createAuthentication({
      ...parts,
      refresh: (connection, principal) => followUps.refresh(connection, principal),
      onKey: () => keyWatch.begin(),
    });
    this.#receive = createReceiving({ ...parts, authenticate });
    const unlistenChanges = deps.sessions.onUserChange((userId) => followUps.userChanged(userId));
    const unlistenEnds = deps.sessions.onEnd((sessionId) => end(this.#index.ofSession(sessionId)));
    this.#unwatch = () => {
      unlistenChanges();
      unlistenEnds();
    };
  }

  /**
   * Upgrades a request once its client network has a free place for an unauthenticated connection. Errors: 400 when the request
   * asks for no upgrade; 429 when the network has too many connections, or no place becomes free in time; 503 while the area
   * stops.
   */
  open({ request, address }: OpeningRequest, opening: Opening<State>): MaybePromise<Response> {
    this.#checkOpen();
    const from = { address: address(), client: clientNetwork(address()) };
    return chain(opening.places.take(from.client, request.signal), (release) =>
      this.#upgrade(request, from, opening, release),
    );
  }

  /** Calls `visit` with each open connection. */
  each(visit: (connection: Connection<State>) => void): void {
    for (const connection of [...this.#connections]) visit(connection);
  }

  /** Counts open connections, unauthenticated ones included. */
  get count(): number {
    return this.#connections.size;
  }

  /** Counts distinct users with an authenticated connection. */
  get userCount(): number {
    return this.#index.userCount;
  }

  /** Counts connections of service keys. */
  get serviceKeyCount(): number {
    return this.#index.ofKeys.size;
  }

  /** Refuses new connections and ignores further messages. */
  refuse(): void {
    this.#isRefusing = true;
  }

  /** Refuses new connections and messages, and closes every connection with 1001. */
  stop(): void {
    this.refuse();
    this.#unwatch();
    this.#keyWatch.stop();
    this.each((connection) => connection.end(CLOSE.goingAway, "The server is stopping"));
  }

  // Events of connections

  opened(connection: Connection<State>): void {
    const { authTimeoutMs } = connection.limits;
    const cancelTimeout = this.#deps.clock.after(authTimeoutMs, () => {
      this.#answers.failAndClose(connection, { code: "AUTH_TIMEOUT", message: `No auth within ${authTimeoutMs} ms` });
    });
    if (connection.pending !== null) connection.pending.cancelTimeout = cancelTimeout;
  }

  received(connection: Connection<State>, message: string | Buffer): void {
    if (!this.#isRefusing) this.#receive(connection, message);
  }

  closed(connection: Connection<State>, code: number): void {
    const { clients, turns } = this.#deps;
    this.#connections.delete(connection);
    if (connection.principal?.kind === "anonymous") clients.leaveAnonymously(connection.client);
    clients.leave(connection.client);
    turns.drop(connection);
    turns.drop(connection.refusals);
    connection.pending?.release();
    connection.pending?.cancelTimeout?.();
    if (connection.principal !== null) this.#index.delete(connection, connection.principal);
    this.#followUps.closed(connection, this.#protocol.closed(connection, code));
  }

  #checkOpen(): void {
    if (this.#isRefusing) throw serverStopping();
  }

  #upgrade(request: Request, from: Origin, opening: Opening<State>, releasePlace: Release): Response {
    const { clients, ids, server, clock } = this.#deps;
    try {
      this.#checkOpen();
      clients.enter(from.client);
    } catch (cause) {
      releasePlace();
      throw cause;
    }
    const parts = { id: ids.uuid(), ...from, state: opening.state(), limits: opening.limits, releasePlace };
    const connection = new Connection<State>({ ...parts, events: this, sockets: server, now: clock.now() });
    this.#connections.add(connection);
    try {
      return server.upgrade(request, connection);
    } catch (cause) {
      this.#connections.delete(connection);
      clients.leave(from.client);
      releasePlace();
      throw cause;
    }
  }
}
