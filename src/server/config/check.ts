import { ConfigError, type ConfigProblem } from "./problems.ts";
import { Platform, type PlatformConfig } from "./sections/platform.ts";
import { check } from "./shape/check.ts";
import { withoutPrototypes } from "./shape/prototypes.ts";
import { createReport } from "./shape/report.ts";

export type CheckedConfig = { config: PlatformConfig } | { problems: ConfigProblem[] };

/** Returns the config with maps that have no prototype, or all of its problems. */
export function checkConfig(value: unknown): CheckedConfig {
  const report = createReport();
  if (!check(Platform, value, report)) return { problems: report.problems };
  // The schema has validated the shape, from which the type follows.
  return { config: withoutPrototypes(Platform, value) as PlatformConfig };
}

/** Checks a config like `checkConfig`, and throws. Errors: `ConfigError` with every problem; `source` names the config in its message. */
export function checkedConfig(value: unknown, source = "The config"): PlatformConfig {
  const checked = checkConfig(value);
  if ("config" in checked) return checked.config;
  const count = checked.problems.length;
  throw new ConfigError(`${source} has ${count === 1 ? "a problem" : `${count} problems`}:`, checked.problems);
}
