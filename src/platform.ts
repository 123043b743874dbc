import { join } from "node:path";
import { type AnyElysia, Elysia } from "elysia";
import { createPrincipals, type Principals } from "./access/principals.ts";
import { createServiceKeys } from "./access/service-keys.ts";
import { createTokenVerifier } from "./access/tokens.ts";
import { createAnalyticsArea } from "./analytics/index.ts";
import { createAuthArea } from "./auth/index.ts";
import { createBackupsArea } from "./backup/index.ts";
import type { AppAccess } from "./config/app-access.ts";
import type { PlatformConfig } from "./config/types.ts";
import { createSqlArea } from "./d1/index.ts";
import { createStorageEngine, openSystemFile, type StorageEngine } from "./db/index.ts";
import { BODY_MAX_BYTES } from "./http/body.ts";
import { createCors } from "./http/cors.ts";
import { type AnswerListener, createHttp, type Http } from "./http/http.ts";
import { createListener } from "./http/listener.ts";
import { createApiDocumentation } from "./http/openapi.ts";
import { createGlobalLimiter, RATE_LIMITS } from "./http/rate-limit.ts";
import { createServer } from "./http/server.ts";
import { type Clock, systemClock } from "./kernel/clock.ts";
import { type Ids, systemIds } from "./kernel/ids.ts";
import { type Logger, silentLogger } from "./kernel/logger.ts";
import { createKeyValueArea } from "./kv/index.ts";
import { createPushArea } from "./push/index.ts";
import { createRealtimeArea } from "./realtime/index.ts";
import { createRoomsArea, migrateRooms, roomMessageMaxBytes } from "./rooms/index.ts";
import { createStorageArea } from "./storage/index.ts";
import { createSystemArea } from "./system/index.ts";
import { createTablesArea } from "./tables/index.ts";
import { createUsersArea } from "./users/index.ts";
import { createVectorArea } from "./vectorize/index.ts";

export interface PlatformOptions {
  dataDirectory: string;
  secrets: { serviceKey: string; jwtSecret: string };
  logger?: Logger;
  clock?: Clock;
  ids?: Ids;
}

export interface Platform {
  /** The server's own way in; passes rules. Decisions 12. */
  readonly app: AppAccess;
  readonly server: AnyElysia;
  /** Answers a request without a network in between. */
  fetch(request: Request): Promise<Response>;
  /** Port 0 picks a free one. Defaults: 127.0.0.1, 8787. */
  listen(options?: { host?: string; port?: number }): Promise<{ url: string; port: number }>;
  /** Stops accepting, answers what is under way, closes sockets with 1001, saves, checkpoints. */
  stop(): Promise<void>;
}

/** Joins the areas; the only place that knows them all. The config has been checked before. */
export async function createPlatform(config: PlatformConfig, options: PlatformOptions): Promise<Platform> {
  const { clock = systemClock, ids = systemIds, logger = silentLogger, dataDirectory, secrets } = options;
  const engine = createStorageEngine({
    ...{ clock, ids },
    onFailure: (path, cause) => logger.error("a database file has a problem", { path, cause }),
  });
  const listener = createListener({
    trustProxy: config.server?.trustProxy === true,
    messageMaxBytes: roomMessageMaxBytes(config.rooms ?? {}),
  });
  const publicUrl = () => (config.server?.publicUrl ?? listener.origin() ?? "").replace(/\/$/, "");
  const systemFile = openSystemFile(engine, dataDirectory);
  const serviceKeys = createServiceKeys({ rootKey: secrets.serviceKey, declared: config.serviceKeys ?? {}, clock });
  const tokens = createTokenVerifier({ secret: secrets.jwtSecret, clock });
  const auth = await createAuthArea({
    ...{ config: config.auth ?? {}, rateLimits: config.rateLimits, file: systemFile, secret: secrets.jwtSecret },
    ...{ dataDirectory, publicUrl, clock, ids, logger },
  });
  const users = createUsersArea({ accounts: auth.accounts, config: config.auth ?? {} });
  const principals = createPrincipals({ serviceKeys, tokens, sessions: auth.sessions });
  const tables = createTablesArea({
    ...{ databases: config.databases ?? {}, directory: join(dataDirectory, "databases") },
    ...{ engine, clock, ids, logger, app: () => app },
    onChange: (address, groups) => realtime.publishChanges(address, groups),
  });
  const native = await createNativeAreas(config, { engine, dataDirectory, clock, ids, logger });
  const rooms = createRoomsArea({
    ...{ config: config.rooms ?? {}, sockets: listener.sockets, principals, sessions: auth.sessions },
    ...{ clock, ids, logger },
    file: engine.open(join(dataDirectory, "rooms.db"), { migrate: migrateRooms }),
    app: () => app,
  });
  const storage = createStorageArea({
    ...{ buckets: config.storage?.buckets ?? {}, file: systemFile, dataDirectory, secret: secrets.jwtSecret },
    ...{ publicUrl: config.server?.publicUrl, clock, ids, logger },
  });
  const realtime = createRealtimeArea({
    ...{ config: config.realtime ?? {}, sockets: listener.sockets, principals, sessions: auth.sessions },
    ...{ tables: tables.door, clock, ids, logger },
  });
  const analytics = createAnalyticsArea({
    requestLog: config.analytics?.requestLog !== false,
    trackLimit: config.rateLimits?.events ?? RATE_LIMITS.events,
    ...{ engine, dataDirectory, clock, logger },
  });
  const push = await createPushArea({ config: config.push ?? {}, file: systemFile, clock, ids, logger });
  const app: AppAccess = {
    db: tables.accessor,
    storage: storage.accessor,
    broadcast: realtime.broadcast,
    users: users.accessor,
    kv: native.kv.accessor,
    sql: native.d1.accessor,
    vectors: native.vectors.accessor,
    push: push.accessor,
  };

  const backups = createBackupsArea({ config: config.backups, dataDirectory, clock, logger });
  const load = () => ({ ...serverLoad({ engine, realtime, rooms, analytics }), ...backups.load });
  const system = createSystemArea({ config, clock, load });
  const { kv, d1, vectors } = native;
  const areas = [system, tables, storage, auth, users, kv, d1, vectors, rooms, realtime, analytics, push];
  const { http, server } = serveAreas(config, areas, {
    ...{ principals, clock, logger, addressOf: listener.addressOf, holdOpen: listener.holdOpen },
    onAnswer: both(system.onAnswer, analytics.onAnswer),
  });

  return {
    app,
    server,
    fetch: async (request) => server.fetch(request),
    async listen({ host, port } = {}) {
      const failure = (cause: unknown) => http.failure(cause, new Request("http://localhost/"));
      return listener.listen(server, { host, port, failure });
    },
    async stop() {
      // Rooms first: they must not take the closing of sockets for players who leave.
      await rooms.stop();
      realtime.stop();
      // Together: requests that send are answered as soon as nothing more is begun.
      await Promise.all([listener.stop(), push.stop(), backups.stop()]);
      await auth.stop();
      await storage.stop();
      await native.stop();
      await analytics.stop();
      await engine.stop();
    },
  };
}

function serverLoad(areas: {
  engine: StorageEngine;
  realtime: { readonly openSockets: number };
  rooms: { readonly openSockets: number; readonly liveRooms: number };
  analytics: { readonly droppedRequests: number };
}) {
  const { engine, realtime, rooms, analytics } = areas;
  return {
    ...{ ...engine.load, realtimeSockets: realtime.openSockets, roomSockets: rooms.openSockets },
    ...{ rooms: rooms.liveRooms, droppedRequests: analytics.droppedRequests },
  };
}

function both(first: AnswerListener, second: AnswerListener | undefined): AnswerListener {
  if (second === undefined) return first;
  return (answer) => {
    first(answer);
    second(answer);
  };
}

/** The routes of all areas as one server, with what belongs to none of them. */
function serveAreas(
  config: PlatformConfig,
  areas: readonly { routes(http: Http): AnyElysia }[],
  deps: {
    principals: Principals;
    clock: Clock;
    logger: Logger;
    addressOf: (request: Request) => string;
    holdOpen: (request: Request, isHeld: boolean) => void;
    onAnswer: AnswerListener;
  },
): { http: Http; server: AnyElysia } {
  const cors = createCors(config.cors);
  const http = createHttp({
    ...deps,
    cors,
    bodyMaxBytes: config.server?.maxBodySize ?? BODY_MAX_BYTES,
    globalLimit: createGlobalLimiter(config.rateLimits?.global ?? RATE_LIMITS.global, deps.clock),
  });
  const routes = areas.reduce((all: AnyElysia, area) => all.use(area.routes(http)), new Elysia());
  const server = createServer(http, cors).use(routes);
  if (config.api?.docs !== false) server.use(createApiDocumentation(http, routes));
  server.compile();
  return { http, server };
}

async function createNativeAreas(
  config: PlatformConfig,
  deps: { engine: StorageEngine; dataDirectory: string; clock: Clock; ids: Ids; logger: Logger },
) {
  const indexes = Object.entries(config.vectorize ?? {}).map(([name, index]) => ({
    metric: "cosine" as const,
    ...index,
    name,
  }));
  const kv = createKeyValueArea({ namespaces: Object.keys(config.kv ?? {}), ...deps });
  const d1 = createSqlArea({ databases: Object.keys(config.d1 ?? {}), ...deps });
  const vectors = await createVectorArea({ indexes, ...deps });
  return {
    ...{ kv, d1, vectors },
    async stop(): Promise<void> {
      await Promise.all([kv.stop(), d1.stop(), vectors.stop()]);
    },
  };
}
