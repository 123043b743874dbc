import type { Logger } from "./kernel/logger.ts";
import type { AppOf } from "./server/config/typed/access.ts";
import type { DefinedConfig } from "./server/config/typed/config.ts";
import type { ConfigTypes } from "./server/config/typed/declared.ts";
import type { PlatformConfig } from "./server/config/types.ts";
import type { OpenPlatform } from "./server/platform/open.ts";

export type { Logger } from "./kernel/logger.ts";
export { ConfigError, type ConfigProblem } from "./server/config/problems.ts";
export * from "./server/config/public.ts";

/** A running platform. Its `app` has the types of the config that `defineConfig` made. */
export type Platform<Types extends ConfigTypes = ConfigTypes> = Omit<OpenPlatform, "app"> & {
  readonly app: AppOf<Types["databases"]>;
};

export interface EmbedOptions {
  /** The directory with all data; `./data` by default. */
  data?: string;
  /** The root service key; by default `PLATFORM_SERVICE_KEY`, else the key of the data directory. */
  serviceKey?: string;
  /** 32 bytes or more; by default `PLATFORM_JWT_SECRET`, else the secret of the data directory. */
  jwtSecret?: string;
  /** Silent by default. */
  logger?: Logger;
  /** The option `--drill`: changes nothing outside the data directory, and sends nothing. false by default. */
  drill?: boolean;
  /** The option `--take-over`: object stores of buckets, and the place of scheduled backups, that belong to another data directory become this one's. false by default. */
  takeOver?: boolean;
}

/**
 * A platform inside another Bun program, as `platform start` runs it: it checks the config, locks the data directory, and
 * generates missing secrets. `fetch` answers at once, the network after `listen`. Errors: `ConfigError` with every problem of
 * the config; the data directory is locked by another process.
 */
export async function createPlatform<Types extends ConfigTypes = ConfigTypes>(
  config: PlatformConfig & Pick<DefinedConfig<Types>, "~types">,
  options: EmbedOptions = {},
): Promise<Platform<Types>> {
  const { data = "./data", serviceKey, jwtSecret, logger, drill: isDrill = false, takeOver = false } = options;
  const environment = {
    PLATFORM_SERVICE_KEY: serviceKey ?? process.env["PLATFORM_SERVICE_KEY"],
    PLATFORM_JWT_SECRET: jwtSecret ?? process.env["PLATFORM_JWT_SECRET"],
  };
  // Loaded here, as most importers of "platform" are configs, which need defineConfig only.
  const [{ checkedConfig }, { openPlatform }] = await Promise.all([
    import("./server/config/check.ts"),
    import("./server/platform/open.ts"),
  ]);
  const platform: OpenPlatform = await openPlatform(checkedConfig(config), {
    data,
    environment,
    logger,
    isDrill,
    takeOver,
  });
  // Only the types differ: `app` knows the tables that the config declares.
  return platform as Platform<Types>;
}
