import { type Clock, systemClock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { TurnBudget } from "../../../kernel/time/turn-budget.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { SessionLookup } from "../../access/sessions.ts";
import type { AppAccess } from "../../config/app/index.ts";
import type { RoomsConfig } from "../../config/types.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import type { AreaSockets } from "../../sockets/area-sockets.ts";
import { presentUser } from "../../sockets/authentication.ts";
import type { Sockets } from "../../sockets/index.ts";
import { RoomsAdministration } from "./administration.ts";
import { SyncTurns } from "./connection/outbox.ts";
import { createProtocol } from "./connection/protocol.ts";
import type { Visitor } from "./connection/visitor.ts";
import { roomAdministrationEndpoints, roomEndpoints } from "./endpoints.ts";
import { type RoomFile, RoomStore } from "./lifecycle/store.ts";
import { RoomsService } from "./service.ts";
import type { PresentAuth, RecordChange } from "./types.ts";

export { roomBacklogMaxBytes, roomMessageMaxBytes } from "./limits.ts";

/** Rooms over WebSockets. Rules: SPEC.md. */
export class RoomsArea {
  readonly endpoints: readonly Endpoint[];
  readonly #service: RoomsService;
  readonly #connections: AreaSockets<Visitor>;
  /** Authenticated connections. */
  readonly #visitors = new Set<Visitor>();

  constructor(deps: {
    config: RoomsConfig;
    sockets: Sockets;
    sessions: SessionLookup;
    /** `<data>/rooms.db`, with `roomsLayout`. */
    file: RoomFile;
    app: () => AppAccess;
    /** Lookups for the context of rules. */
    lookups: Lookups;
    audit: RecordChange;
    clock: Clock;
    logger: Logger;
  }) {
    const { sockets, sessions, clock, audit } = deps;
    const presentAuth: PresentAuth = (sessionId, auth) =>
      presentUser(sessions, { kind: "user", sessionId, auth })?.auth ?? null;
    const turn = new TurnBudget();
    const syncs = new SyncTurns(systemClock.after);
    const store = new RoomStore(deps.file);
    const service = new RoomsService({ ...deps, standing: sockets.rights, presentAuth, turn, store });
    const administration = new RoomsAdministration({ service, store, clock });
    const connections = sockets.serve(createProtocol({ service, visitors: this.#visitors }));
    this.#service = service;
    this.#connections = connections;
    this.endpoints = [
      ...roomEndpoints({ service, connections, turn, syncs }),
      ...roomAdministrationEndpoints({ service, administration, audit }),
    ];
  }

  /** Counts rooms with a place in memory, including hibernating rooms with connections. */
  get liveRooms(): number {
    return this.#service.liveRooms;
  }

  get openSockets(): number {
    return this.#connections.count;
  }

  /** Finishes running tasks, closes every connection with 1001 and saves every room. Does not close the file. */
  async stop(): Promise<void> {
    this.#connections.refuse();
    // Rooms stop before their connections close: running tasks are answered, and no player leaves.
    await this.#service.quiesce();
    for (const visitor of this.#visitors) visitor.finish();
    this.#connections.stop();
    await this.#service.stop();
  }
}
