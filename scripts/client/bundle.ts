import { normalize } from "node:path";
import { ROOT } from "./entries.ts";

export interface ClientBundle {
  /** By their paths in the bundle. The entries are where they are below `root`; chunks have a hash in their name. */
  files: ReadonlyMap<string, Uint8Array>;
  metafile: NonNullable<Bun.BuildOutput["metafile"]>;
}

interface BundleOptions {
  root: string;
  minify: boolean;
  plugins?: Bun.BunPlugin[];
  /** What expressions are known to be. */
  define?: Readonly<Record<string, string>>;
}

/** Bundles entries of the client. What they load when it is used, and what they share, are chunks. */
export async function bundleClient(
  entrypoints: readonly string[],
  { root, minify, plugins = [], define = {} }: BundleOptions,
): Promise<ClientBundle> {
  // Comments and hashes have paths that count from it.
  process.chdir(ROOT);
  const { outputs, metafile } = await Bun.build({
    entrypoints: [...entrypoints],
    root,
    target: "browser",
    format: "esm",
    splitting: true,
    // Preloading takes `import.meta`, which not every bundler understands, and a chunk here imports hardly another one.
    modulePreload: false,
    minify,
    plugins,
    external: ["react"],
    define: { "process.env.NODE_ENV": '"production"', ...define },
    naming: { entry: "[dir]/[name].js", chunk: "chunk-[hash].js" },
    metafile: true,
  });
  if (metafile === undefined) throw new Error("The build of the client has no metafile");
  const files = new Map<string, Uint8Array>();
  for (const output of outputs) files.set(normalize(output.path), new Uint8Array(await output.arrayBuffer()));
  return { files: new Map([...files].sort(([one], [other]) => (one < other ? -1 : 1))), metafile };
}
