import { accessSync, constants, existsSync, mkdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { reasonOf } from "../../kernel/errors.ts";
import { systemIds } from "../../kernel/ids.ts";
import { type Logger, silentLogger } from "../../kernel/logger.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import { requireWhole } from "../areas/backup/work-folder.ts";
import type { ConfigFile } from "../areas/config-editor/index.ts";
import type { DevelopmentKey } from "../areas/mcp/index.ts";
import { readGuide } from "../areas/site/guide/source.ts";
import { resolveSecrets } from "../config/secrets/secrets.ts";
import type { PlatformConfig } from "../config/types.ts";
import { type DirectoryLock, lockDirectory } from "../db/index.ts";
import { awaitFormerWorkers } from "../db/readers/workers-lock.ts";
import { unsafeFileSystems } from "../disk/file-system.ts";
import { removeLeftovers } from "../disk/small-file.ts";
import type { PlatformOptions } from "./base.ts";
import { createPlatform, type Platform } from "./index.ts";

const DIRECTORY_MODE = 0o700;
/** The time that a start waits for the workers of a killed server, which end with it. */
const FORMER_WORKERS_MAX_MS = 5 * SECOND_MS;

export interface OpenPlatform extends Platform {
  /** The root service key. */
  readonly serviceKey: string;
  /** Resolves when another process has taken the data directory; the platform then stops itself. */
  readonly lost: Promise<void>;
}

/**
 * Opens a platform on a data directory: creates the directory, locks it against other processes, and resolves or generates the
 * secrets. `stop` releases the lock. The config is already checked. Errors: the directory is locked by another process; a secret is
 * invalid; a database or an area cannot be opened.
 */
export async function openPlatform(
  config: PlatformConfig,
  options: {
    data: string;
    environment: Readonly<Record<string, string | undefined>>;
    logger?: Logger | undefined;
    /** Whether this is a drill, which changes nothing outside the data directory, and sends nothing. */
    isDrill?: boolean;
    /** Whether prefixes of object stores that belong to another data directory become this one's. */
    takeOver?: boolean;
    /** Lets a worker load the same config. Absent: there are no workers. */
    workers?: PlatformOptions["workers"];
    /** Makes the server the owner of a cluster's files. */
    cluster?: PlatformOptions["cluster"];
    /** Whether this is `platform dev`, which serves the guide. */
    isDevelopment?: boolean;
    /** The key of `platform dev` for agents. */
    development?: DevelopmentKey | null;
    /** The config's file, for edits in the dashboard. */
    configFile?: ConfigFile | null;
    /** Receives a newly generated root service key, even when the platform then fails to open. */
    onNewServiceKey?: (serviceKey: string) => void;
  },
): Promise<OpenPlatform> {
  const { logger = silentLogger, environment, isDrill = false, takeOver = false, onNewServiceKey } = options;
  const guide = options.isDevelopment === true ? await readGuide() : null;
  const { dataDirectory, lock } = openDirectory(options.data);
  try {
    const { secrets, newServiceKey, warnings } = resolveSecrets({ dataDirectory, environment, ids: systemIds });
    for (const warning of [...warnings, ...(await unsafeFileSystems(dataDirectory))]) logger.warn(warning);
    if (newServiceKey !== null) onNewServiceKey?.(newServiceKey);
    const { promise: lost, resolve: lose } = Promise.withResolvers<void>();
    const platform = await createPlatform(config, {
      dataDirectory,
      secrets,
      isDrill,
      takeOver,
      guide,
      configFile: options.configFile ?? null,
      development: options.development ?? null,
      workers: options.workers,
      cluster: options.cluster,
      logger,
      lock,
      onTaken() {
        logger.error("another process has taken the data directory: the server stops", { path: dataDirectory });
        stop().catch((cause: unknown) => logger.error("the server could not be stopped", { cause }));
        lose();
      },
    });
    const stop = async (): Promise<void> => {
      try {
        await platform.stop();
      } finally {
        lock.release();
      }
    };
    return { ...platform, serviceKey: secrets.serviceKey, lost, stop };
  } catch (cause) {
    lock.release();
    throw cause;
  }
}

/** Makes a data directory where there is none, and locks it. Errors: another process uses it, or a restore of it is not complete. */
export function openDirectory(path: string): { dataDirectory: string; lock: DirectoryLock } {
  const dataDirectory = resolve(path);
  makeDirectory(dataDirectory);
  const lock = lockDirectory(dataDirectory);
  try {
    awaitFormerWorkers(dataDirectory, FORMER_WORKERS_MAX_MS);
    requireWhole(dataDirectory);
    for (const folder of ["", "tls", "admin-links", "vectorize"]) removeLeftovers(join(dataDirectory, folder));
    return { dataDirectory, lock };
  } catch (cause) {
    lock.release();
    throw cause;
  }
}

/** Creates the directory without access for other accounts: it will contain password hashes and all records. */
function makeDirectory(dataDirectory: string): void {
  if (existsSync(dataDirectory)) {
    if (!statSync(dataDirectory).isDirectory()) {
      throw new Error(`${dataDirectory} cannot be the data directory: it is a file`);
    }
    requireWritable(dataDirectory);
    return;
  }
  try {
    mkdirSync(dataDirectory, { recursive: true, mode: DIRECTORY_MODE });
  } catch (cause) {
    throw new Error(`Cannot create the data directory: ${reasonOf(cause)}`, { cause });
  }
}

function requireWritable(dataDirectory: string): void {
  try {
    accessSync(dataDirectory, constants.W_OK | constants.X_OK);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : cause;
    const message = `The data directory ${dataDirectory} is not writable (${code}): start the server as its owner, or change the owner`;
    throw new Error(message, { cause });
  }
}
