import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Logger } from "../../kernel/logger.ts";
import { createTurns, type Turns } from "../../kernel/time/turns.ts";
import type { Principals } from "../access/principals.ts";
import type { SessionEvents, SessionLookup, UserEvents } from "../access/sessions.ts";
import { type AreaSockets, createAreaSockets } from "./area-sockets.ts";
import { createClients } from "./clients.ts";
import { MessageTurns } from "./message-turns.ts";
import { createMeters, type MeterSocket } from "./meters.ts";
import type { Protocol } from "./protocol.ts";
import type { SocketServer } from "./socket-server.ts";
import { StandingRights } from "./standing-rights.ts";

/** WebSocket connections of all areas: what they share is the client networks and the turns of the event loop. */
export interface Sockets {
  /** The connections of one area. */
  serve<State, Code extends string>(protocol: Protocol<State, Code>): AreaSockets<State>;
  /** Rights that last as long as what they were granted to. */
  readonly rights: StandingRights;
  /** Steps that follow when users change and connections end: all share the time of a turn, in their order. */
  readonly followUps: Turns;
  /** For WebSockets without a protocol of the server. */
  readonly meter: MeterSocket;
  /** Publishes to native topics of the sockets. */
  readonly server: SocketServer;
}

export interface SocketsDeps {
  server: SocketServer;
  principals: Pick<Principals, "ofToken" | "ofTicket" | "isPresent">;
  sessions: SessionLookup & SessionEvents & UserEvents;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

export function createSockets(deps: SocketsDeps): Sockets {
  const clients = createClients(deps.clock);
  const turns = new MessageTurns();
  const slices = createTurns();
  // Of their own: no client delays a change of rights by sending messages.
  const followUps = createTurns();
  return {
    server: deps.server,
    rights: new StandingRights(deps),
    followUps,
    meter: createMeters({ clients, turns, clock: deps.clock }),
    serve: (protocol) => createAreaSockets(protocol, { ...deps, clients, turns, slices, followUps }),
  };
}
