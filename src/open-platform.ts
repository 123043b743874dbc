import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { requireWhole } from "./backup/interrupted.ts";
import { resolveSecrets } from "./config/secrets.ts";
import type { PlatformConfig } from "./config/types.ts";
import { lockDirectory } from "./db/index.ts";
import { systemIds } from "./kernel/ids.ts";
import { type Logger, silentLogger } from "./kernel/logger.ts";
import { createPlatform, type Platform } from "./platform.ts";

export interface OpenPlatform extends Platform {
  /** The root service key. */
  readonly serviceKey: string;
  /** The root service key when it has just been generated; null when it was there before. */
  readonly newServiceKey: string | null;
}

/**
 * A platform on a data directory of its own: makes the directory, locks it against other processes, finds or generates
 * the secrets; `stop` gives the directory free. The config has been checked before. Errors: another process has the
 * directory; unusable secrets; whatever keeps a database from opening.
 */
export async function openPlatform(
  config: PlatformConfig,
  options: { data: string; environment: Readonly<Record<string, string | undefined>>; logger?: Logger | undefined },
): Promise<OpenPlatform> {
  const { logger = silentLogger, environment } = options;
  const dataDirectory = resolve(options.data);
  mkdirSync(dataDirectory, { recursive: true });
  const lock = lockDirectory(dataDirectory);
  try {
    requireWhole(dataDirectory);
    const { secrets, newServiceKey, warnings } = resolveSecrets({ dataDirectory, environment, ids: systemIds });
    for (const warning of warnings) logger.warn(warning);
    const platform = await createPlatform(config, { dataDirectory, secrets, logger });
    return {
      ...platform,
      serviceKey: secrets.serviceKey,
      newServiceKey,
      async stop() {
        try {
          await platform.stop();
        } finally {
          lock.release();
        }
      },
    };
  } catch (cause) {
    lock.release();
    throw cause;
  }
}
