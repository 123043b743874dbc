import type { Clock } from "../../kernel/clock.ts";
import { serverStopping } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Logger } from "../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../kernel/maybe-promise.ts";
import { clientNetwork } from "../../kernel/network/client-network.ts";
import type { Turns } from "../../kernel/time/turns.ts";
import type { Principals } from "../access/principals.ts";
import type { SessionEvents, SessionLookup, UserEvents } from "../access/sessions.ts";
import { createAnswers } from "./answers.ts";
import { createAuthentication } from "./authentication.ts";
import type { Clients } from "./clients.ts";
import { CLOSE } from "./close-codes.ts";
import { Connection, type ConnectionEvents, type ConnectionLimits } from "./connection.ts";
import { createEndings } from "./endings.ts";
import { createReviews } from "./follow-ups.ts";
import { createKeyWatch } from "./key-watch.ts";
import type { MessageTurns } from "./message-turns.ts";
import type { PendingPlaces, Release } from "./pending-places.ts";
import type { Protocol } from "./protocol.ts";
import { createReceiving } from "./receiving.ts";
import { SessionIndex } from "./session-index.ts";
import type { SocketServer } from "./socket-server.ts";

/** The WebSocket connections of one area. */
export interface AreaSockets<State> {
  /**
   * Upgrades a request, once it has a place among the unauthenticated connections of its client network. Errors: 400 when the
   * request asks for no upgrade; 429 when the network has too many connections, or none of its places becomes free; 503 while
   * the area stops.
   */
  open(request: OpeningRequest, opening: Opening<State>): MaybePromise<Response>;
  /** Calls `visit` with each open connection. */
  each(visit: (connection: Connection<State>) => void): void;
  /** Open connections, unauthenticated ones included. */
  readonly count: number;
  /** Different users who have authenticated. */
  readonly userCount: number;
  /** Connections of service keys. */
  readonly serviceKeyCount: number;
  /** Opens no connection any more, and hears no message. */
  refuse(): void;
  /** The same, and closes every connection with 1001. */
  stop(): void;
}

export interface OpeningRequest {
  readonly request: Request;
  /** The client's address. */
  address(): string;
}

export interface Opening<State> {
  limits: ConnectionLimits;
  /** Of the unauthenticated connections that this one counts with. */
  places: PendingPlaces;
  /** What the area keeps for the connection. Called when the connection has its place. */
  state(): State;
}

export interface AreaSocketsDeps {
  server: SocketServer;
  principals: Pick<Principals, "ofToken" | "ofTicket" | "isPresent">;
  sessions: SessionLookup & SessionEvents & UserEvents;
  clients: Clients;
  turns: MessageTurns;
  slices: Turns;
  followUps: Turns;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** Where a connection comes from: the address, and its network. */
type Origin = { readonly address: string; readonly client: string };

export function createAreaSockets<State, Code extends string>(
  protocol: Protocol<State, Code>,
  deps: AreaSocketsDeps,
): AreaSockets<State> {
  const { server, clients, turns, clock } = deps;
  const connections = new Set<Connection<State>>();
  const index = new SessionIndex<Connection<State>>();
  const answers = createAnswers(protocol, deps.logger);
  const parts = { ...deps, protocol, answers, index };
  const reviews = createReviews(parts);
  const authenticate = createAuthentication({ ...parts, refresh: reviews.refresh, onKey: () => keyWatch.begin() });
  const receive = createReceiving({ ...parts, authenticate });
  const end = createEndings(parts);
  const unwatch = watchSessions(deps.sessions, reviews.userChanged, (id) => end(index.ofSession(id)));
  const keyWatch = createKeyWatch({ ...deps, connections: index.ofKeys, end });
  let isRefusing = false;

  const events: ConnectionEvents<State> = {
    opened(connection) {
      const { authTimeoutMs } = connection.limits;
      const cancelTimeout = clock.after(authTimeoutMs, () => {
        answers.failAndClose(connection, { code: "AUTH_TIMEOUT", message: `No auth within ${authTimeoutMs} ms` });
      });
      if (connection.pending !== null) connection.pending.cancelTimeout = cancelTimeout;
    },
    received(connection, message) {
      if (!isRefusing) receive(connection, message);
    },
    closed(connection, code) {
      connections.delete(connection);
      if (connection.principal?.kind === "anonymous") clients.leaveAnonymously(connection.client);
      clients.leave(connection.client);
      turns.drop(connection);
      turns.drop(connection.refusals);
      connection.pending?.release();
      connection.pending?.cancelTimeout?.();
      if (connection.principal !== null) index.delete(connection, connection.principal);
      reviews.closed(connection, protocol.closed(connection, code));
    },
  };

  const checkOpen = (): void => {
    if (isRefusing) throw serverStopping();
  };
  const upgrade = (request: Request, from: Origin, opening: Opening<State>, releasePlace: Release): Response => {
    try {
      checkOpen();
      clients.enter(from.client);
    } catch (cause) {
      releasePlace();
      throw cause;
    }
    const parts = { id: deps.ids.uuid(), ...from, state: opening.state(), limits: opening.limits, releasePlace };
    const connection = new Connection({ ...parts, events, sockets: server, now: clock.now() });
    connections.add(connection);
    try {
      return server.upgrade(request, connection);
    } catch (cause) {
      connections.delete(connection);
      clients.leave(from.client);
      releasePlace();
      throw cause;
    }
  };
  const refuse = (): void => {
    isRefusing = true;
  };

  return {
    open({ request, address }, opening) {
      checkOpen();
      const from = { address: address(), client: clientNetwork(address()) };
      return chain(opening.places.take(from.client, request.signal), (release) =>
        upgrade(request, from, opening, release),
      );
    },
    each(visit) {
      for (const connection of [...connections]) visit(connection);
    },
    get count() {
      return connections.size;
    },
    get userCount() {
      return index.userCount;
    },
    get serviceKeyCount() {
      return index.ofKeys.size;
    },
    refuse,
    stop() {
      refuse();
      unwatch();
      keyWatch.stop();
      for (const connection of [...connections]) connection.end(CLOSE.goingAway, "The server is stopping");
    },
  };
}

/** Connections follow what happens to their session and their user. The function returned ends it. */
function watchSessions(
  sessions: SessionEvents & UserEvents,
  changed: (userId: string) => void,
  ended: (sessionId: string) => void,
): () => void {
  const unlistenChanges = sessions.onUserChange(changed);
  const unlistenEnds = sessions.onEnd(ended);
  return () => {
    unlistenChanges();
    unlistenEnds();
  };
}
