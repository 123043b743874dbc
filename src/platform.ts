import { join } from "node:path";
import type { Server } from "bun";
import type { AnyElysia } from "elysia";
import { createPrincipals } from "./access/principals.ts";
import { createServiceKeys } from "./access/service-keys.ts";
import { createTokenVerifier } from "./access/tokens.ts";
import { createAuthArea } from "./auth/index.ts";
import type { AppAccess } from "./config/app-access.ts";
import type { PlatformConfig } from "./config/types.ts";
import { createSqlArea } from "./d1/index.ts";
import { createStorageEngine, openSystemFile, type StorageEngine } from "./db/index.ts";
import { BODY_MAX_BYTES } from "./http/body.ts";
import { createCors } from "./http/cors.ts";
import { createHttp } from "./http/http.ts";
import { createGlobalLimiter, RATE_LIMITS } from "./http/rate-limit.ts";
import { createServer } from "./http/server.ts";
import { createSocketServer, type SocketHandler } from "./http/sockets.ts";
import { type Clock, systemClock } from "./kernel/clock.ts";
import { type Ids, systemIds } from "./kernel/ids.ts";
import { type Logger, silentLogger } from "./kernel/logger.ts";
import { createKeyValueArea } from "./kv/index.ts";
import { createSystemArea } from "./system/index.ts";
import { createTablesArea } from "./tables/index.ts";
import { createUsersArea } from "./users/index.ts";
import { createVectorArea } from "./vectorize/index.ts";

export const HOST_DEFAULT = "127.0.0.1";
export const PORT_DEFAULT = 8787;
/** Longer than the slowest answer (a query of 30 s) takes to begin. */
const IDLE_TIMEOUT_SECONDS = 120;
/** Uploads are bounded by their bucket, JSON bodies where they are read; this bounds what neither reads. */
const REQUEST_MAX_BYTES = 1024 ** 4;

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
    clock,
    onFailure: (path, cause) => logger.error("a database file failed and takes no more writes", { path, cause }),
  });
  let listening: Server<SocketHandler> | null = null;
  const sockets = createSocketServer(() => listening);
  const addressOf = createAddresses(config.server?.trustProxy === true, () => listening);

  const publicUrl = () => (config.server?.publicUrl ?? listening?.url.origin ?? "").replace(/\/$/, "");
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
    databases: config.databases ?? {},
    engine,
    directory: join(dataDirectory, "databases"),
    clock,
    ids,
    logger,
    app: () => app,
    onChange: () => {},
  });
  const native = await createNativeAreas(config, { engine, dataDirectory, clock, logger });
  const app: AppAccess = {
    db: tables.accessor,
    users: users.accessor,
    kv: native.kv.accessor,
    sql: native.d1.accessor,
    vectors: native.vectors.accessor,
  } as AppAccess;

  const cors = createCors(config.cors);
  const http = createHttp({
    principals,
    cors,
    logger,
    bodyMaxBytes: config.server?.maxBodySize ?? BODY_MAX_BYTES,
    globalLimit: createGlobalLimiter(config.rateLimits?.global ?? RATE_LIMITS.global, clock),
    addressOf,
  });
  const system = createSystemArea({ config, clock });
  const server = createServer(http, cors)
    .use(system.routes(http))
    .use(tables.routes(http))
    .use(auth.routes(http))
    .use(users.routes(http))
    .use(native.kv.routes(http))
    .use(native.d1.routes(http))
    .use(native.vectors.routes(http));
  server.compile();

  return {
    app,
    server,
    fetch: async (request) => server.fetch(request),
    async listen({ host = HOST_DEFAULT, port = PORT_DEFAULT } = {}) {
      listening = Bun.serve<SocketHandler>({
        hostname: host,
        port,
        idleTimeout: IDLE_TIMEOUT_SECONDS,
        maxRequestBodySize: REQUEST_MAX_BYTES,
        fetch: server.fetch,
        websocket: sockets.handlers,
        error: (cause) => http.failure(cause, new Request("http://localhost/")),
      });
      const boundPort = listening.port ?? port;
      return { url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`, port: boundPort };
    },
    async stop() {
      const stopping = listening;
      listening = null;
      if (stopping !== null) await sockets.stop(stopping);
      await auth.stop();
      await native.stop();
      await engine.stop();
    },
  };
}

/** The client's address: the socket's, or with `trustProxy` what the proxy in front wrote last into `X-Forwarded-For`. */
function createAddresses(
  trustProxy: boolean,
  server: () => Server<SocketHandler> | null,
): (request: Request) => string {
  return (request) => {
    const forwarded = trustProxy ? request.headers.get("x-forwarded-for") : null;
    // Entries before the last are the client's own words.
    const last = forwarded?.split(",").at(-1)?.trim();
    if (last !== undefined && last !== "") return last;
    return server()?.requestIP(request)?.address ?? "127.0.0.1";
  };
}

async function createNativeAreas(
  config: PlatformConfig,
  deps: { engine: StorageEngine; dataDirectory: string; clock: Clock; logger: Logger },
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
