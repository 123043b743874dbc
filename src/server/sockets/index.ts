import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Logger } from "../../kernel/logger.ts";
import { Scheduler } from "../../kernel/time/scheduler.ts";
import type { Principals } from "../access/principals.ts";
import type { SessionEvents, SessionLookup, UserEvents } from "../access/sessions.ts";
import { AreaSockets } from "./area-sockets.ts";
import { Clients, createMeters, type MeterSocket } from "./clients.ts";
import { MessageTurns } from "./message-turns.ts";
import type { Protocol } from "./protocol.ts";
import type { SocketServer } from "./socket-server.ts";
import { StandingRights } from "./standing-rights.ts";

export interface SocketsDeps {
  server: SocketServer;
  principals: Pick<Principals, "ofToken" | "ofTicket" | "isPresent">;
  sessions: SessionLookup & SessionEvents & UserEvents;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** WebSocket connections of all areas, which share the counts of client networks and the turns of the event loop. */
export class Sockets {
  readonly #deps: SocketsDeps;
  readonly #clients: Clients;
  readonly #turns = new MessageTurns();
  readonly #slices = new Scheduler();
  /** Publishes to native topics of the sockets. */
  readonly server: SocketServer;
  /** Rights that outlast one request. */
  readonly rights: StandingRights;
  /**
   * Runs the steps that follow changes of users and ends of connections. Its turns are its own: no client delays a change of
   * rights by sending messages.
   */
  readonly followUps: Scheduler = new Scheduler();
  /** Creates meters for WebSockets outside the server's protocols. */
  readonly meter: MeterSocket;

  constructor(deps: SocketsDeps) {
    this.#deps = deps;
    this.#clients = new Clients(deps.clock);
    this.server = deps.server;
    this.rights = new StandingRights(deps);
    this.meter = createMeters({ clients: this.#clients, turns: this.#turns, clock: deps.clock });
  }

  /** Serves the connections of one area. */
  serve<State>(protocol: Protocol<State>): AreaSockets<State> {
    return new AreaSockets(protocol, {
      ...this.#deps,
      clients: this.#clients,
      turns: this.#turns,
      slices: this.#slices,
      followUps: this.followUps,
    });
  }
}
