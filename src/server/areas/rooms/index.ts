import { type Clock, systemClock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { SessionLookup } from "../../access/sessions.ts";
import type { AppAccess } from "../../config/app/index.ts";
import type { RoomsConfig } from "../../config/types.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { presentUser } from "../../sockets/authentication.ts";
import type { Sockets } from "../../sockets/index.ts";
import { createRoomsAdministration } from "./administration/administration.ts";
import { roomAdministrationEndpoints } from "./administration/endpoints.ts";
import { createProtocol } from "./connection/protocol.ts";
import { SyncTurns } from "./connection/sync-turns.ts";
import type { Visitor } from "./connection/visitor.ts";
import { roomEndpoints } from "./endpoints.ts";
import { createRoomStore, type RoomFile } from "./lifecycle/store.ts";
import { LoopShare } from "./pace/loop-share.ts";
import { createRoomsService } from "./service.ts";
import type { PresentAuth, RecordChange } from "./types.ts";

export { roomBacklogMaxBytes, roomMessageMaxBytes } from "./limits.ts";

export interface RoomsArea {
  endpoints: readonly Endpoint[];
  /** Rooms that have a place in memory; hibernating rooms with connections are included. */
  readonly liveRooms: number;
  readonly openSockets: number;
  /** Finishes what is under way, closes every connection with 1001 and saves every room. Does not close the file. */
  stop(): Promise<void>;
}

/** Rooms over WebSockets. Rules: SPEC.md. */
export function createRoomsArea(deps: {
  config: RoomsConfig;
  sockets: Sockets;
  sessions: SessionLookup;
  /** `<data>/rooms.db`, with `roomsLayout`. */
  file: RoomFile;
  app: () => AppAccess;
  /** For the context of rules. */
  lookups: Lookups;
  audit: RecordChange;
  clock: Clock;
  logger: Logger;
}): RoomsArea {
  const { sockets, sessions } = deps;
  const presentAuth: PresentAuth = (sessionId, auth) =>
    presentUser(sessions, { kind: "user", sessionId, auth })?.auth ?? null;
  const share = new LoopShare();
  const syncs = new SyncTurns(systemClock.after);
  const store = createRoomStore(deps.file);
  const service = createRoomsService({ ...deps, standing: sockets.rights, presentAuth, share, store });
  const administration = createRoomsAdministration({ service, store, clock: deps.clock });
  const visitors = new Set<Visitor>();
  const connections = sockets.serve(createProtocol({ service, visitors }));
  return {
    endpoints: [
      ...roomEndpoints({ service, connections, share, syncs }),
      ...roomAdministrationEndpoints({ service, administration, audit: deps.audit }),
    ],
    get liveRooms() {
      return service.liveRooms;
    },
    get openSockets() {
      return connections.count;
    },
    async stop() {
      connections.refuse();
      // Rooms stop before their connections close: what is under way is answered, and no player leaves.
      await service.quiesce();
      for (const visitor of visitors) visitor.finish();
      connections.stop();
      await service.stop();
    },
  };
}
