import { join } from "node:path";
import { minify } from "terser";
import { bundleClient, type ClientBundle } from "./bundle.ts";
import { MODULE, MODULE_ENTRY, ROOT } from "./entries.ts";
import { joined } from "./joining.ts";
import { packed } from "./packing.ts";

/** The syntax that the supported browsers have. */
const ECMA_VERSION = 2022;
const PASSES = 3;

/** Builds the pack behind `/client/index.js` and its chunks. */
export async function buildModule(): Promise<Uint8Array> {
  return packed((await bundleModule()).files);
}

/**
 * Bundles the module and its lazily loaded parts. The module's static imports are one chunk: each lazily loaded part imports the
 * module, or the bundler would create a chunk of what some of them share with it.
 */
export async function bundleModule(): Promise<ClientBundle> {
  // Browsers have no `Buffer`.
  const options = { root: MODULE, minify: true, define: { "globalThis.Buffer": "undefined" } };
  const { metafile } = await bundleClient([MODULE_ENTRY], options);
  const later = Object.values(metafile.outputs).flatMap(({ entryPoint }) =>
    entryPoint === undefined ? [] : [join(ROOT, entryPoint)],
  );
  const importing = new Set(later.filter((path) => path !== MODULE_ENTRY));
  const plugin: Bun.BunPlugin = {
    name: "one chunk for what the module imports",
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        if (!importing.has(path)) return undefined;
        const source = await Bun.file(path).text();
        return { contents: `${source}\nimport ${JSON.stringify(MODULE_ENTRY)};\n`, loader: "ts" };
      });
    },
  };
  const bundle = await bundleClient([MODULE_ENTRY], { ...options, plugins: [plugin] });
  const files = await Promise.all(
    [...bundle.files].map(async ([path, content]) => [path, await shorten(content)] as const),
  );
  return joined({ ...bundle, files: new Map(files) });
}

/**
 * Minifies further than Bun's minifier. Names that a chunk exports stay: the other chunks import them. No function of the client is
 * used with `new`, which is what makes arrow functions unsafe.
 */
export async function shorten(content: Uint8Array): Promise<Uint8Array> {
  const { code } = await minify(new TextDecoder().decode(content), {
    module: true,
    ecma: ECMA_VERSION,
    compress: { passes: PASSES, pure_getters: true, hoist_funs: true, lhs_constants: false, unsafe_arrows: true },
  });
  if (code === undefined) throw new Error("A chunk cannot be minified");
  return new TextEncoder().encode(code);
}
