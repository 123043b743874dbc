import { normalize } from "node:path";
import { ROOT } from "./entries.ts";

export interface ClientBundle {
  /** The files by their paths in the bundle. Entries retain their paths below `root`; chunks have a hash in their names. */
  files: ReadonlyMap<string, Uint8Array>;
  metafile: NonNullable<Bun.BuildOutput["metafile"]>;
}

interface BundleOptions {
  root: string;
  minify: boolean;
  plugins?: Bun.BunPlugin[];
  /** Constants that replace expressions. */
  define?: Readonly<Record<string, string>>;
}

/** Bundles entries of the client. Lazily loaded modules, and shared ones, become chunks. */
export async function bundleClient(
  entrypoints: readonly string[],
  { root, minify, plugins = [], define = {} }: BundleOptions,
): Promise<ClientBundle> {
  // Comments and hashes contain paths relative to the working directory.
  process.chdir(ROOT);
  const { outputs, metafile } = await Bun.build({
    entrypoints: [...entrypoints],
    root,
    target: "browser",
    format: "esm",
    splitting: true,
    // Preloading uses `import.meta`, which not every bundler understands, and few chunks here import another one.
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
