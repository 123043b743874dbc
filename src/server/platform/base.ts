import type { AnswerGate } from "../../kernel/answer-gate.ts";
import { type Clock, systemClock } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import { type Ids, systemIds } from "../../kernel/ids.ts";
import { type Logger, silentLogger } from "../../kernel/logger.ts";
import { Foreground } from "../../kernel/observing/foreground.ts";
import { type CheckResult, HealthChecks } from "../../kernel/observing/health.ts";
import { LogLines } from "../../kernel/observing/log-lines.ts";
import { AuditOutbox } from "../areas/audit/index.ts";
import { Capture } from "../areas/backup/continuous/capture/capture.ts";
import { type StoredLog, spoolOf } from "../areas/backup/continuous/index.ts";
import type { ConfigFile } from "../areas/config-editor/index.ts";
import type { DevelopmentKey } from "../areas/mcp/index.ts";
import { roomBacklogMaxBytes, roomMessageMaxBytes } from "../areas/rooms/index.ts";
import type { Guide } from "../areas/site/guide/source.ts";
import { Outboxes, watchedNamespaces } from "../areas/triggers/index.ts";
import type { ContinuousConfig, PlatformConfig } from "../config/types.ts";
import {
  bothCaptures,
  type CommitCapture,
  createStorageEngine,
  type DirectoryLock,
  openSystemFile,
  type StorageEngine,
  scarceDescriptors,
  socketsMax,
} from "../db/index.ts";
import { DRILL_HEADERS } from "../http/cors.ts";
import { createListener } from "../http/listening/listener.ts";
import type { OpenInner } from "../http/listening/receivers.ts";
import { holdOutgoing } from "../http/outgoing/leaving.ts";
import type { Stopping } from "./stopping.ts";
import type { ServerWorkers } from "./workers/server-workers.ts";
import type { WorkersOptions } from "./workers/supervisor.ts";

/** Seams of a server that owns the files of a cluster: commits go to the log, and what leaves waits for it. */
export interface ClusterSeams {
  capture: CommitCapture;
  gate: AnswerGate;
  /** The object store that gets what the log has. Absent: none does, as in tests of the seams. */
  store?: { config: ContinuousConfig; log: Omit<StoredLog, "settled"> };
  /** The node that this server is. Absent: it is none that others reach, as in tests of the seams. */
  node?: {
    /** Opens where other nodes forward requests to. */
    openInner: OpenInner;
    /** Returns the state of the cluster, for the health. */
    check(): CheckResult;
    /** Whether this node may answer anything. */
    mayAnswer(): boolean;
  };
}

export interface PlatformOptions {
  dataDirectory: string;
  secrets: { serviceKey: string; jwtSecret: string };
  /** The lock of the data directory. Absent: no other process can use it, as in tests of the code. */
  lock?: DirectoryLock;
  /** Called once, when another process has taken the lock. */
  onTaken?: () => void;
  /** Whether this is a drill, which changes nothing outside the data directory, and sends nothing: for inspecting a restored copy. */
  isDrill?: boolean;
  /** Whether prefixes of object stores that belong to another data directory become this one's. */
  takeOver?: boolean;
  /** The config's file, for edits in the dashboard; null in a product, and where a config is given as an object. */
  configFile?: ConfigFile | null;
  /** Lets a worker load the same config. Absent: there are no workers, whatever the config says. */
  workers?: Pick<WorkersOptions, "args" | "configHash"> | undefined;
  /** Makes the server the owner of a cluster's files. Absent: it is no node of a cluster. */
  cluster?: ClusterSeams | undefined;
  /** The guide, served below `/docs`; null: not served, as outside of development. */
  guide?: Guide | null;
  /** The key of `platform dev` for agents; null outside of development. */
  development?: DevelopmentKey | null;
  logger?: Logger;
  clock?: Clock;
  ids?: Ids;
}

export type Base = ReturnType<typeof openBase>;

/** Opens the base that every area may use. `workers`: null where this process answers alone. */
export function openBase(
  config: PlatformConfig,
  options: PlatformOptions,
  { stopping, workers }: { stopping: Stopping; workers: ServerWorkers | null },
) {
  const { clock = systemClock, ids = systemIds, dataDirectory, secrets } = options;
  /** The last lines of the log, for administrators. */
  const logs = new LogLines({ clock, next: options.logger ?? silentLogger });
  const { logger } = logs;
  const { isDrill = false, takeOver = false, guide = null, configFile = null, development = null } = options;
  /** The health checks, to which areas add theirs; `GET /api/health` and `platform doctor` report them. */
  const health = new HealthChecks({
    clock,
    onFailure: (check, cause) => logger.error("a health check failed", { check, cause }),
  });
  const { capture: logged = null, gate: logGate = null } = options.cluster ?? {};
  const gate = logGate === null ? null : behindOthers(logGate, () => engine.settled());
  if (gate !== null) stopping.add("copies", "outgoing calls", { stop: holdOutgoing(gate) });
  const { continuous, log, spool, capture } = storing(config, options, gate);
  const audit = new AuditOutbox({ clock, dataDirectory });
  const engine = createStorageEngine({
    clock,
    ids,
    audit,
    capture: logged === null || capture === null ? (logged ?? capture ?? undefined) : bothCaptures(logged, capture),
    ...workers?.files,
    onFailure: (path, cause) => logger.error("a database file has a problem", { path, cause }),
  });
  const scarce = scarceDescriptors(engine.descriptorLimit);
  if (scarce !== null) logger.warn(scarce);
  if (capture !== null) capture.takePlace = () => engine.takePlace();
  stopping.add("databases", "databases", engine);
  const { lock, onTaken } = options;
  if (lock !== undefined) {
    const watch = new DirectoryWatch({ clock, engine, logger, lock, onTaken });
    stopping.add("databases", "the lock of the data directory", watch);
  }
  const isTls = config.server?.tls !== undefined;
  const listener = createListener({
    clock,
    isTls,
    proxies: {
      trustProxy: config.server?.trustProxy ?? false,
      clientAddressHeader: config.server?.clientAddressHeader,
    },
    socketsMax: socketsMax(engine.descriptorLimit),
    messageMaxBytes: roomMessageMaxBytes(config.rooms ?? {}),
    waitingMaxBytes: roomBacklogMaxBytes(config.rooms ?? {}),
    gate,
    ...(isDrill ? { upgradeHeaders: DRILL_HEADERS } : {}),
  });
  stopping.add("requests", "requests", listener);
  const outboxes = new Outboxes(watchedNamespaces(config), { clock, ids });
  const systemFile = openSystemFile(engine, dataDirectory, outboxes.optionsOf({ kind: "system" }));
  /** Returns the base address of links to this server, without a trailing slash. */
  const publicUrl = () => (config.server?.publicUrl ?? listener.origin() ?? "").replace(/\/$/, "");
  return {
    clock,
    ids,
    logger,
    dataDirectory,
    secrets,
    isDrill,
    takeOver,
    guide,
    configFile,
    development,
    health,
    logs,
    audit,
    continuous,
    log,
    spool,
    capture,
    foreground: new Foreground(),
    engine,
    isTls,
    listener,
    outboxes,
    systemFile,
    publicUrl,
    workers,
    gate,
  };
}

/** Prepares what takes commits for the continuous backup: that of the config, or of the cluster whose files the server owns. */
function storing(config: PlatformConfig, options: PlatformOptions, gate: AnswerGate | null) {
  const { clock = systemClock, dataDirectory, isDrill = false, cluster } = options;
  const store = cluster?.store ?? null;
  const continuous = store?.config ?? config.backups?.continuous;
  const log = store === null ? null : { ...store.log, settled: async () => void (await gate?.wait()) };
  const spool = isDrill ? null : spoolOf(continuous, { dataDirectory, clock });
  const capture = spool === null ? null : new Capture({ dataDirectory, spool, clock });
  return { continuous, log, spool, capture };
}

/** Returns a gate that waits for commits of other processes first: readers see them before this process gives them to the log. */
function behindOthers(gate: AnswerGate, settled: () => Promise<void> | null): AnswerGate {
  return {
    get position() {
      // Equals none: what is computed while another process commits waits for itself.
      return settled() === null ? gate.position : Number.NaN;
    },
    wait() {
      const others = settled();
      return others === null ? gate.wait() : others.then(() => gate.wait() ?? undefined);
    },
    lease: () => gate.lease(),
    everywhere: () => gate.everywhere(),
  };
}

const CHECK_MS = 1000;

interface DirectoryWatchOptions {
  clock: Clock;
  engine: StorageEngine;
  logger: Logger;
  lock: DirectoryLock;
  /** Called once, when another process has taken the lock. */
  onTaken: (() => void) | undefined;
}

/**
 * Checks every second whether the data directory is still in its place. While it is not (moved, deleted, or mounted over), the open
 * files belong to a directory that a restart would not find: writes are refused until it is back; reads continue. [DB301]
 */
class DirectoryWatch {
  readonly #options: DirectoryWatchOptions;
  #cancel: () => void;

  constructor(options: DirectoryWatchOptions) {
    this.#options = options;
    this.#cancel = options.clock.after(CHECK_MS, () => this.#check());
  }

  stop(): void {
    this.#cancel();
  }

  #check(): void {
    const { clock, engine, logger, lock, onTaken } = this.#options;
    const place = lock.place();
    const wasAway = engine.refusal !== null;
    if (place === "held") {
      engine.refusal = null;
      if (wasAway) logger.info("the data directory is back: writes are taken again");
    } else {
      engine.refusal = new AppError(503, "The data directory is not where it was: nothing is written until it is back");
      if (place === "taken") {
        onTaken?.();
        return;
      }
      if (!wasAway) logger.error("the data directory is not where it was: writes are refused until it is back");
    }
    this.#cancel = clock.after(CHECK_MS, () => this.#check());
  }
}
