import { statSync } from "node:fs";
import { basename, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { constants, zstdCompressSync } from "node:zlib";
import type { BunPlugin } from "bun";
import { PARTS } from "./client/build.ts";
import { queryTexts } from "./query-texts.ts";

// `npm run build`: the whole program as one executable, dist/platform. `--target bun-linux-arm64` builds for another
// system, `--outfile FILE` to another path, `--no-bytecode` without the parsed form of the sources, which shortens the start.

const root = resolve(import.meta.dir, "..");
const BYTES_PER_MIB = 1024 * 1024;

const { values } = parseArgs({
  args: process.argv.slice(2),
  allowNegative: true,
  options: {
    outfile: { type: "string", default: resolve(root, "dist/platform") },
    target: { type: "string" },
    bytecode: { type: "boolean", default: true },
  },
});

/** The programs of the processes that the server starts, bundled to be sent to them (src/db/processes/child.ts). */
const programs: Record<string, string> = {};
for (const path of [...new Bun.Glob("src/**/*-job.ts").scanSync({ cwd: root })].sort()) {
  const bundle = await Bun.build({ entrypoints: [resolve(root, path)], target: "bun", format: "cjs", minify: true });
  const text = await bundle.outputs[0]?.text();
  if (text === undefined) throw new Error(`${path} gave no bundle`);
  programs[path.replace(/^src\/|\.ts$/g, "")] = text;
}

const define = {
  "process.env.NODE_ENV": JSON.stringify("production"),
  PLATFORM_PROGRAMS: JSON.stringify(programs),
};
const entrypoints = [resolve(root, "src/main.ts")];

/** The files that the program embeds are embedded anew in what `platform build` makes. */
const filesOutside: BunPlugin = {
  name: "files-outside",
  setup(build) {
    build.onResolve(
      {
        filter:
          /^(?:swagger-ui-dist|sqlite-vec-[\w-]+)\/.*\.(?:css|js|so|dylib|dll)$|^platform:(?:program|client-module|client-package|dashboard)$/,
      },
      ({ path }) => ({
        path,
        external: true,
      }),
    );
  },
};

/** What executable and product have in common: what is imported by `import()` is a chunk of its own, which a start does not load. */
const common = { entrypoints, target: "bun", splitting: true, minify: true, define } as const;

/** The program's chunks by their names, from which the executable builds others (src/cli/product). */
const bundled = await Bun.build({ ...common, plugins: [queryTexts, filesOutside] });
const chunks = await Promise.all(bundled.outputs.map(async (chunk) => [basename(chunk.path), await chunk.text()]));
const program = Buffer.from(JSON.stringify(Object.fromEntries(chunks)));

/** What the program imports as `platform:…`: files that exist in the executable only. */
const embedded: Readonly<Record<string, Uint8Array>> = {
  "platform:program": zstdCompressSync(program, { params: { [constants.ZSTD_c_compressionLevel]: 19 } }),
  "platform:client-module": await PARTS.module(),
  "platform:client-package": await PARTS.package(),
  "platform:dashboard": await PARTS.dashboard(),
};

const embeddedFiles: BunPlugin = {
  name: "embedded-files",
  setup(build) {
    build.onResolve({ filter: /^platform:/ }, ({ path }) => ({
      path: path.slice("platform:".length),
      namespace: "embedded",
    }));
    build.onLoad({ filter: /./, namespace: "embedded" }, ({ path }) => ({
      loader: "file",
      contents: embedded[`platform:${path}`] ?? "",
    }));
  },
};

const outfile = resolve(values.outfile);
const startedAt = performance.now();
const built = await Bun.build({
  ...common,
  root: resolve(root, "src"),
  compile: {
    outfile,
    // A bunfig.toml in the working directory belongs to another program.
    autoloadBunfig: false,
    // A config may import packages installed beside it, which Bun finds by their package.json.
    autoloadPackageJson: true,
    // Bun checks the name, and lists those that exist.
    ...(values.target === undefined ? {} : { target: values.target as Bun.Build.CompileTarget }),
  },
  format: "esm",
  bytecode: values.bytecode,
  plugins: [queryTexts, embeddedFiles],
  throw: false,
});
for (const log of built.logs) console.error(String(log));
if (!built.success) process.exit(1);
const sizeMib = Math.round(statSync(outfile).size / BYTES_PER_MIB);
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
console.log(`${relative(process.cwd(), outfile)}: ${sizeMib} MiB, built in ${seconds} s`);
