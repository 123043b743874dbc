import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "../../../kernel/clock.ts";
import { isPromise } from "../../../kernel/maybe-promise.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import { checkedConfig } from "../check.ts";
import { LOAD_MAX_MS, LOGO_MAX_BYTES } from "../limits.ts";
import { ConfigError, type ConfigProblem } from "../problems.ts";
import { PAGES_PATH } from "../sections/auth-pages.ts";
import { SERVER_PATHS } from "../server-paths.ts";
import type { PlatformConfig } from "../types.ts";
import { missingImports } from "./imported-files.ts";
import { ownProduct, provideToProduct } from "./product.ts";
import { type PlatformModule, providedModules, provideModules } from "./provided-modules.ts";
import { variablesOf } from "./variables.ts";
import { configWarnings } from "./warnings.ts";

export interface LoadedConfig {
  config: PlatformConfig;
  /** Settings that are allowed and probably a mistake. */
  warnings: ConfigProblem[];
}

/**
 * Loads and checks a config file; in an executable of `platform build`, the embedded config. Tests shorten `timeoutMs`. Errors:
 * `ConfigError` with every problem.
 */
export async function loadConfig(
  file: string,
  platformModule: PlatformModule,
  timeoutMs: number = LOAD_MAX_MS,
): Promise<LoadedConfig> {
  const product = ownProduct();
  if (product !== null) provideToProduct(providedModules(platformModule));
  const source = product === null ? resolve(file) : `The config of ${product.name}`;
  const loading = product === null ? importConfig(source, platformModule) : product.loadConfig();
  const checked = checkedConfig(await defaultExport(loading, source, timeoutMs), source);
  const config = product === null ? withLogo(withDirectories(checked, source), source) : checked;
  // The files of a product's site are embedded: they were checked at build time.
  const ofSite = product === null ? siteWarnings(config) : [];
  const variables = product === null ? variablesOf(source) : product.variables;
  return { config, warnings: [...configWarnings(config), ...ofSite, ...unsetWarnings(variables)] };
}

/** Warns about unset variables: a development secret behind `??` must not reach an installation by accident. */
function unsetWarnings(variables: readonly string[]): ConfigProblem[] {
  const unset = variables.filter((name) => process.env[name] === undefined);
  return unset.length === 0 ? [] : [{ path: "process.env", message: `not set, and read: ${unset.join(", ")}` }];
}

/** Resolves the config's paths against its file. Errors: `ConfigError` for a directory that does not exist. */
function withDirectories(config: PlatformConfig, source: string): PlatformConfig {
  const { site } = config;
  if (site === undefined) return config;
  const directory = resolve(dirname(source), site.directory);
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) {
    const message = `there is no directory ${directory}`;
    throw new ConfigError(`${source} has a problem:`, [{ path: "site.directory", message }]);
  }
  return { ...config, site: { ...site, directory } };
}

/** Resolves the path of the pages' logo. Errors: `ConfigError` for a file that does not exist, or is too large. */
function withLogo(config: PlatformConfig, source: string): PlatformConfig {
  const { auth } = config;
  if (auth?.pages?.logo === undefined) return config;
  const logo = resolve(dirname(source), auth.pages.logo);
  const facts = statSync(logo, { throwIfNoEntry: false });
  const message = facts?.isFile() !== true ? `there is no file ${logo}` : tooLarge(facts.size);
  if (message !== null) throw new ConfigError(`${source} has a problem:`, [{ path: "auth.pages.logo", message }]);
  return { ...config, auth: { ...auth, pages: { ...auth.pages, logo } } };
}

const tooLarge = (bytes: number): string | null =>
  bytes <= LOGO_MAX_BYTES ? null : `must be at most ${LOGO_MAX_BYTES} bytes, got ${bytes}`;

/**
 * Imports the config, which may import its own relative files, and packages installed beside it. Errors: `ConfigError` for a
 * missing file.
 */
function importConfig(path: string, platformModule: PlatformModule): Promise<unknown> {
  if (!existsSync(path)) throw new ConfigError(`There is no config file at ${path}; "platform init" creates one`);
  if (statSync(path).isDirectory()) throw new ConfigError(`${path} is a directory; the config must be a file`);
  provideModules(platformModule);
  return import(pathToFileURL(path).href);
}

/**
 * Returns the default export of a config's module, unchecked. Errors: `ConfigError` for a module that cannot be parsed, throws,
 * does not settle, or has no default export.
 */
async function defaultExport(importing: Promise<unknown>, source: string, timeoutMs: number): Promise<unknown> {
  let module: unknown;
  try {
    if (!(await endsWithin(importing, timeoutMs, systemClock))) {
      throw new ConfigError(`${source} is not loaded after ${timeoutMs} ms: a promise that it awaits does not settle`);
    }
    module = await importing;
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`${source} cannot be loaded:\n${describeLoading(source, cause)}`, [], cause);
  }
  if (typeof module !== "object" || module === null || !("default" in module)) {
    throw new ConfigError(`${source} has no default export; end it with \`export default defineConfig({ … })\``);
  }
  if (isPromise(module.default)) throw new ConfigError(`${source} exports a promise; await it: export default await …`);
  return module.default;
}

/** Describes why loading failed. Bun names the first missing module; this names all of them. */
function describeLoading(source: string, cause: unknown): string {
  const missing = cause instanceof Error && cause.name === "ResolveMessage" ? missingImports(source) : [];
  return missing.length > 1 ? missing.join("\n") : describeFailure(cause);
}

function describeFailure(cause: unknown): string {
  if (cause instanceof AggregateError) return cause.errors.map(describeFailure).join("\n");
  if (isPositioned(cause)) {
    const { file, line, column, lineText } = cause.position;
    return `${file}:${line}:${column}: ${cause.message}\n  ${lineText}`;
  }
  if (!(cause instanceof Error)) return String(cause);
  if (cause.name === "ResolveMessage") return describeMissing(cause.message);
  return cause.stack === undefined ? cause.message : firstFrames(cause);
}

/** Describes Bun's message about a missing module; a package has to be installed. */
function describeMissing(message: string): string {
  const name = /^Cannot find package '([^']+)'/.exec(message)?.[1];
  return name === undefined ? message : `${message}; install it beside the config: npm install ${name}`;
}

/** Returns the error with its first stack frames; later ones are frames of this program. */
function firstFrames(error: Error): string {
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return [`${error.name}: ${error.message}`, ...frames.slice(0, 3)].join("\n");
}

interface Positioned {
  message: string;
  position: { file: string; line: number; column: number; lineText: string };
}

/** Whether the cause is Bun's BuildMessage or ResolveMessage, which are no Errors. */
function isPositioned(cause: unknown): cause is Positioned {
  if (typeof cause !== "object" || cause === null || !("position" in cause)) return false;
  return typeof cause.position === "object" && cause.position !== null;
}

/** Warns about files at the server's own paths, and at those of its pages, which are never served. */
function siteWarnings({ site, auth }: PlatformConfig): ConfigProblem[] {
  if (site === undefined) return [];
  const { directory } = site;
  const hidden = SERVER_PATHS.filter((name) => existsSync(join(directory, name))).map((name) => ({
    path: "site.directory",
    message: `has "${name}", which is never served: /${name} is the server's own`,
  }));
  if (auth?.pages === undefined) return hidden;
  const { path = PAGES_PATH } = auth.pages;
  const ending = ["", ".html"].find((one) => existsSync(join(directory, path + one)));
  if (ending === undefined) return hidden;
  const message = `has "${path.slice(1)}${ending}", which the pages of auth.pages hide: set auth.pages.path to another path`;
  return [...hidden, { path: "site.directory", message }];
}
