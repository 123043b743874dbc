import { dirname } from "node:path";
import type { BunPlugin } from "bun";
import { MODULES, type PackedSite, PRODUCT, type ProvidedModules } from "../../config/loading/product.ts";
import { CommandError } from "../errors.ts";
import type { Program } from "./program.ts";
import type { Target } from "./targets.ts";

export interface ProductSources {
  name: string;
  version: string;
  /** The path of the config. */
  config: string;
  program: Program;
  /** The environment variables: see `Product`. */
  variables: readonly string[];
  site: PackedSite | null;
  logo: string | null;
  /** The modules that the config shares with the program. */
  provided: ProvidedModules;
}

/** Bundles program and config into one executable. `runtime`: Bun for the target; null for the one of this executable. */
export async function bundleProduct(
  sources: ProductSources,
  { target, runtime, outfile }: { target: Target; runtime: string | null; outfile: string },
): Promise<void> {
  const entry = "platform:product";
  const result = await Bun.build({
    entrypoints: [entry],
    compile: {
      outfile,
      autoloadBunfig: false,
      // Everything is embedded: packages where the executable runs do not matter.
      autoloadPackageJson: false,
      autoloadDotenv: false,
      autoloadTsconfig: false,
      ...(runtime === null ? {} : { target, executablePath: runtime }),
    },
    format: "esm",
    splitting: true,
    bytecode: true,
    // Not minified: rules are inspected by their source, such as the number of their parameters.
    minify: false,
    define: { "process.env.NODE_ENV": JSON.stringify("production") },
    plugins: [modulesOf(entry, sources), noNativeAddons],
    throw: false,
  });
  if (result.success) return;
  throw new CommandError(["The config cannot be bundled:", ...result.logs.map(String)].join("\n"));
}

const modulesOf = (entry: string, sources: ProductSources): BunPlugin => ({
  name: "product",
  setup(build) {
    const { program, provided, site } = sources;
    const namespace = "product";
    if (site !== null) build.onResolve({ filter: /^platform:site$/ }, () => ({ path: site.file, namespace: "asset" }));
    build.onResolve({ filter: oneOf(program.assets.keys()) }, ({ path }) => ({
      path: program.assets.get(path) ?? path,
      namespace: "asset",
    }));
    build.onResolve({ filter: /^platform:/ }, ({ path }) => ({ path, namespace }));
    build.onResolve({ filter: oneOf(Object.keys(provided)) }, ({ path, importer }) =>
      dirname(importer) === program.directory ? undefined : { path: `platform:module/${path}`, namespace },
    );
    build.onLoad({ filter: /./, namespace }, ({ path }) => ({
      loader: "js",
      contents: path === entry ? entrySource(sources) : sharedModule(path.replace("platform:module/", ""), provided),
    }));
    build.onLoad({ filter: /./, namespace: "asset" }, async ({ path }) => ({
      loader: "file",
      contents: await Bun.file(path).bytes(),
    }));
  },
});

/** Returns the entry's source. The program imports the config on demand. */
function entrySource({ name, version, config, program, variables, site, logo }: ProductSources): string {
  return [
    ...(site === null ? [] : ['import site from "platform:site" with { type: "file" };']),
    `globalThis[Symbol.for(${JSON.stringify(PRODUCT.description)})] = {`,
    `  name: ${JSON.stringify(name)},`,
    `  version: ${JSON.stringify(version)},`,
    `  variables: ${JSON.stringify(variables)},`,
    `  loadConfig: () => import(${JSON.stringify(config)}),`,
    `  site: ${site === null ? "null" : `{ ...${JSON.stringify({ ...site, file: "" })}, file: site }`},`,
    `  logo: ${JSON.stringify(logo)},`,
    "};",
    `await import(${JSON.stringify(program.path)});`,
  ].join("\n");
}

/** Re-exports the running program's module, so that a class of it is the same class in the config. */
function sharedModule(name: string, provided: ProvidedModules): string {
  const names = Object.keys(provided[name] ?? {});
  const shared = `globalThis[Symbol.for(${JSON.stringify(MODULES.description)})][${JSON.stringify(name)}]`;
  const exports = names.map((one) =>
    one === "default" ? "export default shared.default;" : `export const ${one} = shared[${JSON.stringify(one)}];`,
  );
  return [`const shared = ${shared};`, ...exports].join("\n");
}

const oneOf = (names: Iterable<string>): RegExp => new RegExp(`^(?:${[...names].map(RegExp.escape).join("|")})$`);

/** Matches packages that load native addons: the addon's file is resolved only at run time. */
const ADDON_LOADERS = /^(?:bindings|node-gyp-build|@mapbox\/node-pre-gyp|prebuild-install)$/;

const noNativeAddons: BunPlugin = {
  name: "native-addons",
  setup(build) {
    const refuse = (addon: string): never => {
      throw new Error(`${addon} is a native addon, which an executable cannot contain`);
    };
    build.onResolve({ filter: ADDON_LOADERS }, ({ importer }) => refuse(packageOf(importer)));
    build.onResolve({ filter: /\.node$/ }, ({ path, importer }) =>
      refuse(path.startsWith(".") ? packageOf(importer) : path),
    );
  },
};

/** Returns the package of a file: `sharp` for one in node_modules/sharp; the file itself where it is in no package. */
function packageOf(file: string): string {
  return /^.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(file)?.[1] ?? file;
}
