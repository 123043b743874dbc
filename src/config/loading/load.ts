import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "../../kernel/clock.ts";
import { endsWithin } from "../../kernel/time/stop.ts";
import { checkedConfig } from "../check.ts";
import { LOAD_MAX_MS } from "../limits.ts";
import { ConfigError, type ConfigProblem } from "../problems.ts";
import type { PlatformConfig } from "../types.ts";
import { type PlatformModule, provideModules } from "./provided-modules.ts";
import { configWarnings } from "./warnings.ts";

export interface LoadedConfig {
  config: PlatformConfig;
  /** What is allowed and probably a mistake. */
  warnings: ConfigProblem[];
}

/** Loads and checks a config file. Tests shorten `timeoutMs`. Errors: `ConfigError` with every problem. */
export async function loadConfig(
  file: string,
  platformModule: PlatformModule,
  timeoutMs: number = LOAD_MAX_MS,
): Promise<LoadedConfig> {
  const config = checkedConfig(await loadConfigModule(file, platformModule, timeoutMs), resolve(file));
  return { config, warnings: configWarnings(config) };
}

/**
 * The default export of a config file, unchecked. The file may import its own relative files, and packages installed
 * beside it. Errors: `ConfigError` for a file that is missing, cannot be parsed, throws, does not settle, or has no default
 * export.
 */
async function loadConfigModule(file: string, platformModule: PlatformModule, timeoutMs: number): Promise<unknown> {
  const path = resolve(file);
  if (!existsSync(path)) throw new ConfigError(`There is no config file at ${path}; "platform init" creates one`);
  if (statSync(path).isDirectory()) throw new ConfigError(`${path} is a directory; the config must be a file`);
  provideModules(platformModule);
  let module: unknown;
  try {
    const importing: Promise<unknown> = import(pathToFileURL(path).href);
    if (!(await endsWithin(importing, timeoutMs, systemClock))) {
      throw new ConfigError(`${path} is not loaded after ${timeoutMs} ms: a promise that it awaits does not settle`);
    }
    module = await importing;
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`${path} cannot be loaded:\n${describeFailure(cause)}`, [], cause);
  }
  if (typeof module !== "object" || module === null || !("default" in module)) {
    throw new ConfigError(`${path} has no default export; end it with \`export default defineConfig({ … })\``);
  }
  return module.default;
}

function describeFailure(cause: unknown): string {
  if (cause instanceof AggregateError) return cause.errors.map(describeFailure).join("\n");
  if (isPositioned(cause)) {
    const { file, line, column, lineText } = cause.position;
    return `${file}:${line}:${column}: ${cause.message}\n  ${lineText}`;
  }
  if (cause instanceof Error) return cause.stack === undefined ? cause.message : firstFrames(cause);
  return String(cause);
}

/** The error with its first stack frames; later ones are frames of this program. */
function firstFrames(error: Error): string {
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return [`${error.name}: ${error.message}`, ...frames.slice(0, 3)].join("\n");
}

interface Positioned {
  message: string;
  position: { file: string; line: number; column: number; lineText: string };
}

/** Bun's BuildMessage and ResolveMessage, which are no Errors. */
function isPositioned(cause: unknown): cause is Positioned {
  if (typeof cause !== "object" || cause === null || !("position" in cause)) return false;
  return typeof cause.position === "object" && cause.position !== null;
}
