import { join } from "node:path";
import { type AnyElysia, Elysia } from "elysia";
import { roomsLayout } from "../schema/migrations/index.ts";
import { createPrincipals, type Principals } from "./access/principals.ts";
import { createServiceKeys } from "./access/service-keys.ts";
import { createTokenVerifier } from "./access/tokens.ts";
import { createAnalyticsArea } from "./analytics/index.ts";
import { createAuthArea } from "./auth/index.ts";
import { createBackupsArea } from "./backup/index.ts";
import type { AppAccess } from "./config/app-access.ts";
import type { PlatformConfig } from "./config/types.ts";
import { createSqlArea } from "./d1/index.ts";
import { createStorageEngine, layOut, openSystemFile, type StorageEngine, socketsMax } from "./db/index.ts";
import { createCors, DRILL_HEADERS } from "./http/cors.ts";
import type { Endpoint } from "./http/endpoint.ts";
import { type AnswerListener, createHttp, type Http } from "./http/http.ts";
import { BODY_MAX_BYTES } from "./http/limits.ts";
import { createListener } from "./http/listener.ts";
import { mountEndpoints } from "./http/mount.ts";
import { createApiDocument, type DeclaredTables, declaredQueries } from "./http/openapi/document.ts";
import { documentationEndpoints } from "./http/openapi/pages.ts";
import { createGlobalLimiter, RATE_LIMITS } from "./http/rate-limit.ts";
import { createServer } from "./http/server.ts";
import { type Clock, systemClock } from "./kernel/clock.ts";
import { SECOND_MS } from "./kernel/duration.ts";
import { type Ids, systemIds } from "./kernel/ids.ts";
import { type Logger, silentLogger } from "./kernel/logger.ts";
import { STOP_MAX_MS, type StopStep, stopAll, UNDER_WAY_MAX_MS } from "./kernel/stop.ts";
import { createKeyValueArea } from "./kv/index.ts";
import { createPushArea } from "./push/index.ts";
import { createRealtimeArea } from "./realtime/index.ts";
import { createRoomsArea, roomBacklogMaxBytes, roomMessageMaxBytes } from "./rooms/index.ts";
import { createStorageArea } from "./storage/index.ts";
import { createSystemArea } from "./system/index.ts";
import { createTablesArea } from "./tables/index.ts";
import { createUsersArea } from "./users/index.ts";
import { createVectorArea } from "./vectorize/index.ts";

export interface PlatformOptions {
  dataDirectory: string;
  secrets: { serviceKey: string; jwtSecret: string };
  /** Nothing outside the data directory is changed, and nothing is sent: for looking at a restored copy. */
  isDrill?: boolean;
  /** Prefixes of object stores that belong to another data directory become this one's. */
  takeOver?: boolean;
  logger?: Logger;
  clock?: Clock;
  ids?: Ids;
}

export interface Platform {
  /** The server's own way in; passes rules. */
  readonly app: AppAccess;
  readonly server: AnyElysia;
  /** Answers a request without a network in between. */
  fetch(request: Request): Promise<Response>;
  /** Port 0 picks a free one. Defaults: 127.0.0.1, 8787. Errors: a port that cannot be had; it listens already, or was stopped. */
  listen(options?: { host?: string; port?: number }): Promise<{ url: string; port: number }>;
  /**
   * Stops accepting, answers what is under way for up to 5 s, closes sockets with 1001, saves, checkpoints. Goes through
   * all areas whatever one of them throws. Errors: an AggregateError of what they threw, when all of them are done.
   */
  stop(): Promise<void>;
}

/** Joins the areas; the only place that knows them all. The config has been checked before. */
export async function createPlatform(config: PlatformConfig, options: PlatformOptions): Promise<Platform> {
  const opened: Stoppable[] = [];
  const open: Open = (area) => {
    opened.push(area);
    return area;
  };
  try {
    const base = openBase(config, options, open);
    return serve(config, base, await openAreas(config, base, open));
  } catch (cause) {
    // Nothing has been served yet, so nothing is lost; files and timers of what did open must not stay behind.
    const { clock = systemClock, logger = silentLogger } = options;
    const steps = opened.toReversed().map((area) => [{ name: "an area", untilMs: SAVED_MS, stop: () => area.stop() }]);
    // Each failure is logged; what is told is why the platform did not open.
    await stopAll(steps, { clock, logger }).catch(() => {});
    throw cause;
  }
}

interface Stoppable {
  stop(): void | Promise<void>;
}

/** Notes what has to be stopped should what comes after it fail. */
type Open = <Area extends Stoppable>(area: Area) => Area;

type Base = ReturnType<typeof openBase>;
type Areas = Awaited<ReturnType<typeof openAreas>>;

/** What areas stand on. */
function openBase(config: PlatformConfig, options: PlatformOptions, open: Open) {
  const { clock = systemClock, ids = systemIds, logger = silentLogger, dataDirectory, secrets } = options;
  const { isDrill = false, takeOver = false } = options;
  const engine = open(
    createStorageEngine({
      ...{ clock, ids },
      onFailure: (path, cause) => logger.error("a database file has a problem", { path, cause }),
    }),
  );
  const listener = createListener({
    trustProxy: config.server?.trustProxy === true,
    socketsMax: socketsMax(engine.descriptorLimit),
    messageMaxBytes: roomMessageMaxBytes(config.rooms ?? {}),
    waitingMaxBytes: roomBacklogMaxBytes(config.rooms ?? {}),
    ...(isDrill ? { upgradeHeaders: DRILL_HEADERS } : {}),
  });
  const systemFile = openSystemFile(engine, dataDirectory);
  return { clock, ids, logger, dataDirectory, secrets, isDrill, takeOver, engine, listener, systemFile };
}

async function openAreas(config: PlatformConfig, base: Base, open: Open) {
  const { clock, ids, logger, dataDirectory, secrets, isDrill, engine, listener, systemFile } = base;
  const publicUrl = () => (config.server?.publicUrl ?? listener.origin() ?? "").replace(/\/$/, "");
  const serviceKeys = createServiceKeys({ rootKey: secrets.serviceKey, declared: config.serviceKeys ?? {}, clock });
  const tokens = createTokenVerifier({ secret: secrets.jwtSecret, clock });
  const auth = open(
    await createAuthArea({
      ...{ config: config.auth ?? {}, rateLimits: config.rateLimits, file: systemFile, secret: secrets.jwtSecret },
      ...{ isDrill, dataDirectory, publicUrl, clock, ids, logger },
    }),
  );
  const users = createUsersArea({ accounts: auth.accounts, config: config.auth ?? {}, limit: auth.limit });
  const principals = createPrincipals({ serviceKeys, tokens, sessions: auth.sessions });
  const tables = open(
    createTablesArea({
      ...{ databases: config.databases ?? {}, directory: join(dataDirectory, "databases") },
      ...{ engine, clock, ids, logger, app: () => app },
      onChange: (address, groups) => realtime.publishChanges(address, groups),
    }),
  );
  const kv = open(createKeyValueArea({ namespaces: Object.keys(config.kv ?? {}), ...base }));
  const d1 = open(createSqlArea({ databases: Object.keys(config.d1 ?? {}), ...base }));
  const indexes = Object.entries(config.vectorize ?? {}).map(([name, index]) => ({
    metric: "cosine" as const,
    ...index,
    name,
  }));
  const vectors = open(await createVectorArea({ indexes, ...base }));
  const sockets = { sockets: listener.sockets, principals, sessions: auth.sessions };
  const rooms = open(
    createRoomsArea({
      ...{ config: config.rooms ?? {}, ...sockets, clock, ids, logger, app: () => app },
      file: engine.open(join(dataDirectory, "rooms.db"), { migrate: layOut(roomsLayout) }),
    }),
  );
  const storage = open(
    await createStorageArea({
      ...{ account: auth.accounts.get, serviceKey: serviceKeys.named },
      objectStores: isDrill ? { mode: "readOnly" } : { mode: "own", takeOver: base.takeOver },
      ...{
        buckets: config.storage?.buckets ?? {},
        thumbs: config.storage?.thumbs,
        file: systemFile,
        dataDirectory,
        secret: secrets.jwtSecret,
      },
      ...{ publicUrl: config.server?.publicUrl, clock, ids, logger },
    }),
  );
  const realtime = open(
    createRealtimeArea({ config: config.realtime ?? {}, ...sockets, tables: tables.door, clock, ids, logger }),
  );
  const analytics = open(
    createAnalyticsArea({
      requestLog: config.analytics?.requestLog !== false,
      trackLimit: config.rateLimits?.events ?? RATE_LIMITS.events,
      ...{ engine, dataDirectory, clock, logger },
    }),
  );
  const push = open(await createPushArea({ config: config.push ?? {}, isDrill, file: systemFile, clock, ids, logger }));
  const backups = open(createBackupsArea({ config: config.backups, isDrill, dataDirectory, clock, logger }));
  const app: AppAccess = {
    ...{ db: tables.accessor, storage: storage.accessor, users: users.accessor, broadcast: realtime.broadcast },
    ...{ kv: kv.accessor, sql: d1.accessor, vectors: vectors.accessor, push: push.accessor },
  };
  return {
    ...{ app, principals, auth, users, tables, kv, d1, vectors, rooms, storage, realtime, analytics, push, backups },
  };
}

/** Milliseconds of a stop: what is under way has ended or is cut off; what is to be saved is on its way to the disk. */
const UNDER_WAY_ENDED_MS = UNDER_WAY_MAX_MS + SECOND_MS;
const SAVED_MS = STOP_MAX_MS - SECOND_MS;

/** Who sees the declared tables in the OpenAPI document, by `api.schemaEndpoint`. */
const VISIBLE_TO: Readonly<Record<string, DeclaredTables["visibleTo"]>> = {
  true: "everyone",
  authenticated: "authenticated",
  false: "nobody",
};

function serve(config: PlatformConfig, base: Base, areas: Areas): Platform {
  const { engine, listener, clock, logger, isDrill } = base;
  const { principals, auth, users, tables, kv, d1, vectors, rooms, storage, realtime, analytics, push, backups } =
    areas;
  let stopped: Promise<void> | null = null;
  const load = () => ({ ...serverLoad({ engine, realtime, rooms, analytics }), ...backups.load });
  const system = createSystemArea({ config, isDrill, clock, load });
  const routed = [system, tables, storage, auth, users, kv, d1, vectors, rooms, realtime, analytics, push];
  const { http, server } = serveAreas(config, routed, {
    ...{ principals, clock, logger, isDrill, addressOf: listener.addressOf, holdOpen: listener.holdOpen },
    onAnswer: both(system.onAnswer, analytics.onAnswer),
    tables: {
      visibleTo: VISIBLE_TO[String(config.api?.schemaEndpoint ?? false)] ?? "nobody",
      describe: tables.describe,
    },
  });
  return {
    app: areas.app,
    server,
    fetch: async (request) => server.fetch(request),
    async listen({ host, port } = {}) {
      const failure = (cause: unknown) => http.failure(cause, new Request("http://localhost/"));
      return listener.listen(server, { host, port, failure });
    },
    stop() {
      stopped ??= stopAreas({ engine, listener, clock, logger }, areas);
      return stopped;
    },
  };
}

/**
 * What is under way gets its time, then is cut off; then everything is saved. All of it fits into STOP_MAX_MS, but for
 * the databases: a file that is still open must not be given to another process.
 */
function stopAreas(
  { engine, listener, clock, logger }: Pick<Base, "engine" | "listener" | "clock" | "logger">,
  areas: Areas,
) {
  const { auth, tables, kv, d1, vectors, rooms, storage, realtime, analytics, push, backups } = areas;
  const step = (name: string, area: Stoppable, untilMs: number | null): StopStep => ({
    name,
    untilMs,
    stop: () => area.stop(),
  });
  listener.refuse();
  return stopAll(
    [
      // Rooms first: what they have under way is answered, with everything still there for it, and
      // they must not take the closing of sockets for players who leave.
      [step("rooms", rooms, UNDER_WAY_ENDED_MS)],
      [step("realtime", realtime, UNDER_WAY_ENDED_MS)],
      // Together: requests that send are answered as soon as nothing more is begun.
      [
        step("requests", listener, UNDER_WAY_ENDED_MS),
        step("push", push, UNDER_WAY_ENDED_MS),
        step("backups", backups, UNDER_WAY_ENDED_MS),
      ],
      // What requests and rooms have written sets off hooks, which use all that follows.
      [step("hooks after writes", tables, SAVED_MS)],
      [step("auth", auth, SAVED_MS), step("storage", storage, SAVED_MS)],
      [step("key-value", kv, SAVED_MS), step("d1", d1, SAVED_MS), step("vectorize", vectors, SAVED_MS)],
      [step("analytics", analytics, SAVED_MS)],
      [step("databases", engine, null)],
    ],
    { clock, logger },
  );
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
  areas: readonly ({ routes(http: Http): AnyElysia } | { endpoints: readonly Endpoint[] })[],
  deps: {
    principals: Principals;
    clock: Clock;
    logger: Logger;
    isDrill: boolean;
    addressOf: (request: Request) => string;
    holdOpen: (request: Request, isHeld: boolean) => void;
    onAnswer: AnswerListener;
    tables: DeclaredTables;
  },
): { http: Http; server: AnyElysia } {
  const cors = createCors(config.cors, deps.isDrill ? DRILL_HEADERS : {});
  const http = createHttp({
    ...deps,
    cors,
    bodyMaxBytes: config.server?.maxBodySize ?? BODY_MAX_BYTES,
    globalLimit: createGlobalLimiter(config.rateLimits?.global ?? RATE_LIMITS.global, deps.clock),
  });
  const endpoints = areas.flatMap((area) => ("endpoints" in area ? area.endpoints : []));
  const routes = areas.reduce(
    (all: AnyElysia, area) => all.use("routes" in area ? area.routes(http) : mountEndpoints(http, area.endpoints)),
    new Elysia(),
  );
  http.declare(declaredQueries(routes));
  const server = createServer(http, cors).use(routes);
  if (config.api?.docs !== false) {
    server.use(
      mountEndpoints(http, documentationEndpoints(createApiDocument({ routes, endpoints, tables: deps.tables }))),
    );
  }
  server.compile();
  return { http, server };
}
