import type { AnyElysia } from "elysia";
import { systemClock } from "../../kernel/clock.ts";
import { type Logger, silentLogger } from "../../kernel/logger.ts";
import type { AppAccess } from "../config/app/index.ts";
import type { PlatformConfig } from "../config/types.ts";
import { leaving } from "../http/listening/leaving.ts";
import { type Certificate, HOST_DEFAULT, type ServeHere, TLS_HOST_DEFAULT } from "../http/listening/listener.ts";
import type { OpenInner } from "../http/listening/receivers.ts";
import { type Areas, openAreas } from "./areas.ts";
import { type Base, openBase, type PlatformOptions } from "./base.ts";
import { serveAreas } from "./server.ts";
import { createStopping, type Stopping } from "./stopping.ts";
import type { WorkerAnswer } from "./workers/messages.ts";
import { ServerWorkers } from "./workers/server-workers.ts";

export interface Platform {
  /** The server's own access, which bypasses rules. */
  readonly app: AppAccess;
  readonly server: AnyElysia;
  /** Counts answers of another process in the metrics and the request log. */
  count(answers: readonly WorkerAnswer[]): void;
  /** Answers a request without the network. */
  fetch(request: Request): Promise<Response>;
  /**
   * Listens. Port 0 picks a free one. Defaults: 127.0.0.1, 8787; with TLS 0.0.0.0, 443. Errors: the port is not available; already
   * listening, or stopped.
   */
  listen(options?: {
    host?: string | undefined;
    port?: number | undefined;
    /** Serves on a port that this process has open; null: opens one. */
    serve?: ServeHere | null;
  }): Promise<{ url: string; port: number }>;
  /**
   * Accepts no new requests, lets those in progress run for up to 5 s, closes sockets with 1001, saves, and checkpoints. All areas
   * are stopped, whatever one of them throws. Errors: an AggregateError of what they threw, when all of them have stopped.
   */
  stop(): Promise<void>;
}

/** Creates the platform from its areas. The config is already checked. */
export async function createPlatform(config: PlatformConfig, options: PlatformOptions): Promise<Platform> {
  const { clock = systemClock, logger = silentLogger } = options;
  const stopping = createStopping({ clock, logger });
  try {
    const workers = prepareWorkers(config, options, logger);
    if (workers !== null) stopping.add("requests", "workers", workers);
    const base = openBase(config, options, { stopping, workers });
    const { areas, app } = await openAreas(config, base, stopping);
    const node = options.cluster?.node ?? null;
    if (node !== null) base.health.add("cluster", node.check, { isVital: () => !node.mayAnswer() });
    return serve(config, { base, areas, app, stopping, openInner: node?.openInner ?? null });
  } catch (cause) {
    // Files and timers of the parts that did open must not leak. Their failures are logged.
    await stopping.stop().catch(() => {});
    throw cause;
  }
}

/** Prepares the workers that the config allows; null: none. */
function prepareWorkers(config: PlatformConfig, options: PlatformOptions, logger: Logger): ServerWorkers | null {
  const { workers: loading, secrets, dataDirectory, isDrill = false } = options;
  const { tls, workers: count = tls === undefined ? "auto" : 0 } = config.server ?? {};
  if (count === 0 || loading === undefined) return null;
  if (options.cluster !== undefined) {
    if (count !== "auto") logger.warn("workers: an owner of a cluster answers alone: there are none");
    return null;
  }
  if (process.platform !== "linux") {
    if (count !== "auto") logger.warn("workers: this system cannot share a port between processes: there are none");
    return null;
  }
  const order = { dataDirectory, secrets, isDrill };
  return new ServerWorkers({ ...loading, count, order, clock: options.clock ?? systemClock, logger });
}

/** Begins with the workers. There are none until the next start while a file of 0.2 is rewritten: only the main process waits for that. */
async function beginWorkers(
  workers: ServerWorkers,
  { config, areas, base }: { config: PlatformConfig; areas: Areas; base: Base },
  {
    host,
    ...at
  }: { host: string | undefined; port: number; tls: Certificate | null; notOfSite: readonly string[] | null },
): Promise<void> {
  const { listener, foreground, logger } = base;
  const rewritten = Object.keys(config.databases ?? {}).map((name) => areas.tables.file(name, null)?.ready());
  if (rewritten.every((ready) => ready === undefined)) {
    const answered = (): number => foreground.answered;
    const { lendable } = areas.tables;
    const hostDefault = at.tls === null ? HOST_DEFAULT : TLS_HOST_DEFAULT;
    return workers.begin({
      ...at,
      host: host ?? hostDefault,
      lendable,
      openInner: listener.openInner,
      shed: listener.shed,
      answered,
    });
  }
  for (const ready of rewritten) ready?.catch(() => {});
  logger.warn("workers: a file of records is rewritten first: there are none until the next start");
}

function serve(
  config: PlatformConfig,
  {
    base,
    areas,
    app,
    stopping,
    openInner,
  }: { base: Base; areas: Areas; app: AppAccess; stopping: Stopping; openInner: OpenInner | null },
): Platform {
  const { http, server, native, notOfSite, count } = serveAreas(config, base, areas);
  const failure = (cause: unknown, request = new Request("http://localhost/")) => http.failure(cause, request);
  const answer = leaving(server.fetch, { gate: base.gate, failure });
  let stopped: Promise<void> | null = null;
  return {
    app,
    server,
    count,
    fetch: async (request) => answer(base.listener.complete(request)),
    async listen({ host, port, serve: serveHere = null } = {}) {
      const { area } = areas.tls;
      const { workers } = base;
      const isShared = workers !== null;
      const opened = area === null ? null : await area.open();
      // A filter of the port's sockets knows those of this process alone.
      const tls = opened === null ? null : { ...opened, steering: isShared ? null : opened.steering };
      const options = { host, port, tls, routes: native, isShared, serve: serveHere, failure };
      const listening = base.listener.listen(server, options);
      if (openInner !== null) base.listener.openInner(openInner);
      if (workers !== null)
        await beginWorkers(workers, { config, areas, base }, { host, port: listening.port, tls, notOfSite });
      const renew = (certificate: Certificate): void => {
        base.listener.renew(certificate);
        workers?.renew(certificate);
      };
      area?.begin({ host: host ?? TLS_HOST_DEFAULT, port: listening.port, renew });
      return listening;
    },
    stop() {
      if (stopped === null) {
        base.health.stopping();
        base.listener.refuse();
        // Clients of a node go on at another one from the last that they got, so they get everything first.
        stopped = base.gate === null ? stopping.stop() : base.listener.settled().then(() => stopping.stop());
      }
      return stopped;
    },
  };
}
