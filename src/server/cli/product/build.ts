import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { Command, Option } from "@commander-js/extra-typings";
import * as platformModule from "../../../index.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { isJsonObject } from "../../../kernel/json/json.ts";
import { directoryFiles } from "../../areas/site/directory.ts";
import { loadConfig } from "../../config/loading/load.ts";
import type { PackedFile, PackedSite } from "../../config/loading/product.ts";
import { providedModules } from "../../config/loading/provided-modules.ts";
import { variablesOf } from "../../config/loading/variables.ts";
import { CommandError, UsageError } from "../errors.ts";
import { configOption, option } from "../options.ts";
import { printAnswer, printNote } from "../output.ts";
import { rehearseRoutes } from "../rehearsal/routes.ts";
import { bundleProduct } from "./bundle.ts";
import { writeProgram } from "./program.ts";
import { isTarget, ownTarget, TARGETS, type Target } from "./targets.ts";

const BYTES_PER_MIB = 1024 * 1024;

export const buildCommand = new Command("build")
  .description("Builds one executable of the platform and a config with all that it imports")
  .addOption(configOption)
  .addOption(option("--out <FILE>", "The executable; by default ./NAME of the package.json beside the config"))
  .addOption(new Option("--target <TARGET>", "Another system").choices(Object.keys(TARGETS).filter(isTarget)))
  .addOption(option("--runtime <FILE>", "Bun for another system, from its npm package"))
  .addOption(option("--sqlite-vec <FILE>", "sqlite-vec's library for another system, from its npm package"))
  .action(async (options) => {
    const target = targetOf(options.target);
    const { runtime, library } = partsFor(target, options.runtime, options.sqliteVec);
    const { config: declared, warnings } = await loadConfig(options.config, platformModule);
    for (const { path, message } of warnings) await printNote(`warning: ${path}: ${message}`);
    await rehearseRoutes(declared, options.config);
    const config = resolve(options.config);
    const variables = variablesOf(config);
    const { name, version } = productOf(dirname(config));
    const outfile = outfileOf(options.out ?? `./${name}`, target);
    const directory = mkdtempSync(join(tmpdir(), "platform-build-"));
    try {
      const program = await writeProgram(directory, target, library);
      const site = declared.site === undefined ? null : packSite(declared.site.directory, join(directory, "site"));
      const provided = providedModules(platformModule);
      const logoFile = declared.auth?.pages?.logo;
      const logo = logoFile === undefined ? null : readFileSync(logoFile).toString("base64");
      const sources = { name, version, config, program, variables, site, logo, provided };
      // Replaced atomically: a running server keeps the file from which it was started.
      const made = join(dirname(outfile), `.${process.pid}.${basename(outfile)}`);
      await bundleProduct(sources, { target, runtime, outfile: made });
      renameSync(made, outfile);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
    await printAnswer(`${outfile}: ${name} ${version}, ${Math.round(statSync(outfile).size / BYTES_PER_MIB)} MiB`);
    if (variables.length > 0) await printNote(`Where it runs, it reads the variables ${variables.join(", ")}`);
    if (target.startsWith("bun-darwin")) await printNote("macOS starts it once it is signed: codesign --sign - FILE");
  });

/** Resolves the target. Errors: no executable can be built for this machine. */
function targetOf(given: Target | undefined): Target {
  const target = given ?? ownTarget();
  if (target === null) throw new CommandError(`There is no target for ${process.platform} on ${process.arch}`);
  return target;
}

/** Returns the parts that another system needs and this executable does not contain; null for this system. */
function partsFor(
  target: Target,
  runtime: string | undefined,
  library: string | undefined,
): { runtime: string | null; library: string | null } {
  if (target === ownTarget()) {
    if (runtime !== undefined || library !== undefined)
      throw new UsageError(`--runtime and --sqlite-vec are for another system than ${target}`);
    return { runtime: null, library: null };
  }
  const { sqliteVec: module, runtime: bun } = TARGETS[target];
  if (runtime === undefined)
    throw new UsageError(`${target} needs --runtime FILE: Bun ${Bun.version} from the npm package ${bun}`);
  if (library === undefined)
    throw new UsageError(
      `${target} needs --sqlite-vec FILE: ${basename(module)} from the npm package ${dirname(module)}`,
    );
  for (const [option, file] of [
    ["--runtime", runtime],
    ["--sqlite-vec", library],
  ] as const) {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile())
      throw new CommandError(`${option}: there is no file ${file}`);
  }
  return { runtime: resolve(runtime), library: resolve(library) };
}

/** Returns name and version of the package.json beside the config; `app` and 0.0.0 without one. */
function productOf(directory: string): { name: string; version: string } {
  const file = join(directory, "package.json");
  let manifest: unknown = {};
  try {
    if (existsSync(file)) manifest = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new CommandError(`${file} is not JSON`, { cause });
  }
  const { name, version } = isJsonObject(manifest) ? manifest : {};
  return {
    // The scope is dropped: the name becomes a file's name.
    name: typeof name === "string" && name !== "" ? basename(name) : "app",
    version: typeof version === "string" && version !== "" ? version : "0.0.0",
  };
}

function outfileOf(out: string, target: Target): string {
  const path = resolve(target === "bun-windows-x64" && !out.endsWith(".exe") ? `${out}.exe` : out);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new CommandError(`${path} is a directory; --out names a file`);
  if (!existsSync(dirname(path))) throw new CommandError(`There is no directory ${dirname(path)}`);
  return path;
}

/** Packs the files that the site at `directory` serves into `file`, one after another. */
export function packSite(directory: string, file: string): PackedSite {
  const served = directoryFiles(directory, systemClock);
  const files: Record<string, PackedFile> = {};
  const visited = new Set<string>();
  const output = openSync(file, "w");
  let start = 0;
  const add = (path: string): void => {
    const found = served.find(path);
    if (found === null) return;
    if (found !== "directory") {
      const content = readFileSync(join(directory, path));
      for (let written = 0; written < content.length; ) written += writeSync(output, content, written);
      const hash = new Bun.CryptoHasher("sha256").update(content).digest("base64url").slice(0, HASH_CHARACTERS);
      files[path] = { start, size: content.length, hash, contentType: found.contentType };
      start += content.length;
      return;
    }
    // A symbolic link may lead outside the directory.
    const real = realpathSync(join(directory, path));
    if (visited.has(real)) return;
    visited.add(real);
    for (const name of readdirSync(real).sort()) {
      // The same rule as in `sitePath`.
      if (name.startsWith(".") && !(path === "" && name === ".well-known")) continue;
      add(path === "" ? name : `${path}/${name}`);
    }
  };
  try {
    add("");
  } finally {
    closeSync(output);
  }
  return { file, modifiedMs: systemClock.now(), files };
}

/** The length of a hash: 96 bits, which no two versions of a file share. */
const HASH_CHARACTERS = 16;
