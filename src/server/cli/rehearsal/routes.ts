import { systemClock } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import { LOAD_MAX_MS } from "../../config/limits.ts";
import { ConfigError } from "../../config/problems.ts";
import type { PlatformConfig } from "../../config/types.ts";

/** Creates the routes of a config, as a start does. `source` is the config's name. Errors: `ConfigError` where a start would fail. */
export async function rehearseRoutes({ routes }: PlatformConfig, source: string): Promise<void> {
  if (routes === undefined) return;
  // Loaded here: most configs have no routes.
  const { tryRoutes } = await import("../../areas/functions/index.ts");
  const broken = (message: string, cause?: unknown): ConfigError =>
    new ConfigError(`${source} has a problem:`, [{ path: "routes", message }], cause);
  const making = tryRoutes(routes).catch((cause: unknown) => {
    throw broken(reasonOf(cause), cause);
  });
  if (!(await endsWithin(making, LOAD_MAX_MS, systemClock))) {
    throw broken(`are not made after ${LOAD_MAX_MS} ms: a promise that they await does not settle`);
  }
}
