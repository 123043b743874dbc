import type { AnyElysia } from "elysia";
import type { Principals } from "../access/principals.ts";
import type { SessionEvents, SessionLookup } from "../access/sessions.ts";
import type { AppAccess } from "../config/app-access.ts";
import type { RoomsConfig } from "../config/types.ts";
import type { Http } from "../http/http.ts";
import { type Clock, systemClock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import type { SocketServer } from "../sockets/server/socket-server.ts";
import { createConnections, createPresentAuth } from "./connections.ts";
import { LoopShare } from "./loop-share.ts";
import { createRoomRoutes } from "./routes.ts";
import { createRoomsService } from "./service.ts";
import { createRoomStore, type RoomFile } from "./store.ts";
import { SyncTurns } from "./sync-turns.ts";

export { roomBacklogMaxBytes, roomMessageMaxBytes } from "./limits.ts";

export interface RoomsArea {
  routes(http: Http): AnyElysia;
  /** Rooms that are known in memory. */
  readonly liveRooms: number;
  readonly openSockets: number;
  /** Answers what is under way, closes every connection with 1001, saves every room. The file belongs to the engine. */
  stop(): Promise<void>;
}

/** Rooms over WebSockets. Spec: Room endpoints, Events; rules: SPEC.md. */
export function createRoomsArea(deps: {
  config: RoomsConfig;
  sockets: SocketServer;
  principals: Pick<Principals, "ofToken">;
  sessions: SessionLookup & Pick<SessionEvents, "onEnd">;
  /** `<data>/rooms.db`, laid out by `roomsLayout`. */
  file: RoomFile;
  app: () => AppAccess;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): RoomsArea {
  const presentAuth = createPresentAuth(deps.sessions);
  const share = new LoopShare();
  const syncs = new SyncTurns(systemClock.after);
  const service = createRoomsService({ ...deps, presentAuth, share, store: createRoomStore(deps.file) });
  const connections = createConnections({ ...deps, presentAuth });
  return {
    routes: (http) => createRoomRoutes(http, { ...deps, service, connections, share, syncs }),
    get liveRooms() {
      return service.liveRooms;
    },
    get openSockets() {
      return connections.count;
    },
    async stop() {
      connections.refuse();
      // The rooms before their connections: what is under way is answered, and the closing is nobody's leaving.
      await service.quiesce();
      connections.stop();
      await service.stop();
    },
  };
}
