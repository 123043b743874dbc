import { createReadStream, createWriteStream, existsSync, statSync } from "node:fs";
import { basename, relative, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { constants, createZstdCompress, zstdCompressSync } from "node:zlib";
import type { BunPlugin } from "bun";
import { guideOf } from "../src/server/areas/site/guide/source.ts";
import { ownTarget, runtimeFile, TARGETS } from "../src/server/cli/product/targets.ts";
import { PARTS } from "./client/build.ts";
import { queryTexts } from "./query-texts.ts";
import { packedSwaggerUi } from "./swagger-ui.ts";

// `npm run build`: the whole program as one executable, dist/platform. `--target bun-linux-arm64` builds for another
// system, with its parts from `--packages DIR`, a folder like node_modules; `--outfile FILE` to another path, `--no-bytecode`
// without the parsed form of the sources, which shortens the start, `--zst` a compressed copy beside it.

const root = resolve(import.meta.dir, "..");
const BYTES_PER_MIB = 1024 * 1024;
/** The highest compression level that takes no special option, and little memory, to decompress. */
const RELEASE_LEVEL = 19;
/** The JIT policy of a start: how many times longer its code is interpreted before it is compiled. */
const START_JIT_POLICY = 8;

const { values } = parseArgs({
  args: process.argv.slice(2),
  allowNegative: true,
  options: {
    outfile: { type: "string", default: resolve(root, "dist/platform") },
    target: { type: "string" },
    packages: { type: "string", default: resolve(root, "node_modules") },
    bytecode: { type: "boolean", default: true },
    zst: { type: "boolean", default: false },
  },
});

/** The programs of the server's child processes, bundled to be sent to them (src/server/db/processes/child.ts). */
const programs: Record<string, string> = {};
for (const path of [...new Bun.Glob("src/**/*-job.ts").scanSync({ cwd: root })].sort()) {
  const bundle = await Bun.build({
    entrypoints: [resolve(root, path)],
    target: "bun",
    format: "cjs",
    minify: true,
    external: ["platform:*"],
    // This form has the path of the source as a text, which would differ by the directory of the build.
    define: { "import.meta.url": '"file:///"' },
  });
  const text = await bundle.outputs[0]?.text();
  if (text === undefined) throw new Error(`${path} gave no bundle`);
  programs[path.replace(/^src\/server\/|\.ts$/g, "")] = text;
}

const zstd = (content: Uint8Array): Buffer =>
  zstdCompressSync(content, { params: { [constants.ZSTD_c_compressionLevel]: RELEASE_LEVEL } });
const packedText = (text: string): string => zstd(Buffer.from(text)).toString("base64");

/** Compresses long texts, such as the licences, which would otherwise be in the executable twice: as they are, and in its bytecode. */
const packedTexts: BunPlugin = {
  name: "packed-texts",
  setup(build) {
    build.onLoad({ filter: /\.txt$/ }, async ({ path }) => ({
      loader: "js",
      contents: [
        'import { zstdDecompressSync } from "node:zlib";',
        `const packed = ${JSON.stringify(packedText(await Bun.file(path).text()))};`,
        'export default zstdDecompressSync(Buffer.from(packed, "base64")).toString();',
      ].join("\n"),
    }));
  },
};

/** Removes parts of acme-client that nothing here calls: its older cryptography, and forms that its HTTP client could send. */
const uncalled: BunPlugin = {
  name: "uncalled",
  setup(build) {
    build.onResolve({ filter: /^(?:\.\/crypto\/forge|form-data)$/ }, ({ path }) => ({ path, namespace: "uncalled" }));
    build.onLoad({ filter: /./, namespace: "uncalled" }, () => ({ loader: "js", contents: "module.exports = {};" }));
  },
};

const define = {
  "process.env.NODE_ENV": JSON.stringify("production"),
  PLATFORM_PROGRAMS: JSON.stringify(packedText(JSON.stringify(programs))),
};
const entrypoints = [resolve(root, "src/main.ts")];

/** Keeps the files that the program embeds outside the bundle: `platform build` embeds them anew. */
const filesOutside: BunPlugin = {
  name: "files-outside",
  setup(build) {
    build.onResolve(
      {
        filter:
          /^sqlite-vec-[\w-]+\/.*\.(?:so|dylib|dll)$|^platform:(?:program|client-module|client-package|dashboard|guide|swagger-ui|argon2)$/,
      },
      ({ path }) => ({
        path,
        external: true,
      }),
    );
  },
};

/** The options that executable and product share: each `import()` is a chunk of its own, which a start does not load. */
const common = { entrypoints, target: "bun", splitting: true, minify: true, define } as const;

/** The program's chunks by their names, from which the executable builds products (src/server/cli/product). */
const bundled = await Bun.build({ ...common, plugins: [queryTexts, uncalled, packedTexts, filesOutside] });
const chunks = await Promise.all(bundled.outputs.map(async (chunk) => [basename(chunk.path), await chunk.text()]));
const program = Buffer.from(JSON.stringify(Object.fromEntries(chunks)));

/** The target that the machine is not, with the parts that `--packages` has for it; undefined for this machine. */
const other = Object.entries(TARGETS).find(([name]) => name === values.target && name !== ownTarget())?.[1];
const packages = resolve(values.packages);
const library = other === undefined ? undefined : Bun.file(resolve(packages, other.sqliteVec));
const runtime = other === undefined ? "" : resolve(packages, other.runtime, runtimeFile(other.platform));

/** The modules that the program imports as `platform:…`: files that exist only in the executable. */
const embedded: Readonly<Record<string, Uint8Array>> = {
  "platform:program": zstd(program),
  "platform:client-module": await PARTS.module(),
  "platform:client-package": await PARTS.package(),
  "platform:dashboard": await PARTS.dashboard({ isShort: true }),
  "platform:guide": zstd(Buffer.from(JSON.stringify([...guideOf(resolve(root, "docs"))]))),
  "platform:swagger-ui": await packedSwaggerUi(),
  "platform:argon2": await argon2For(values.target),
  ...(library !== undefined && (await library.exists())
    ? { [`platform:${other?.sqliteVec}`]: await library.bytes() }
    : {}),
};

const embeddedFiles: BunPlugin = {
  name: "embedded-files",
  setup(build) {
    build.onResolve({ filter: /^platform:/ }, ({ path }) => ({
      path: path.slice("platform:".length),
      namespace: "embedded",
    }));
    // Another system's executable has the library of that system alone.
    if (library !== undefined)
      build.onResolve({ filter: /^sqlite-vec-[\w-]+\/vec0\./ }, ({ path }) =>
        path === other?.sqliteVec ? { path, namespace: "embedded" } : { path, external: true },
      );
    build.onLoad({ filter: /./, namespace: "embedded" }, ({ path }) => ({
      loader: "file",
      contents: embedded[`platform:${path}`] ?? "",
    }));
  },
};

/** Returns the library that hashes passwords on this system; nothing for one that has none, or whose package is not installed. */
async function argon2For(target: string | undefined): Promise<Uint8Array> {
  const [, system = process.platform, arch = process.arch] = target?.split("-") ?? [];
  const name = `argon2.${system}-${arch}-gnu.node`;
  const file = Bun.file(resolve(packages, `@node-rs/argon2-${system}-${arch}-gnu`, name));
  const isMusl = target?.includes("musl") === true;
  return !isMusl && (await file.exists()) ? file.bytes() : new Uint8Array();
}

/** Writes the executable. */
async function compile(file: string, target: string | undefined): Promise<void> {
  const built = await Bun.build({
    ...common,
    root: resolve(root, "src"),
    compile: {
      outfile: file,
      // A bunfig.toml in the working directory belongs to another program.
      autoloadBunfig: false,
      // A config may import packages installed beside it, which Bun finds by their package.json.
      autoloadPackageJson: true,
      // The file beside the config is loaded instead of the one in the working directory (src/server/config/loading/env-file.ts).
      autoloadDotenv: false,
      // Code that runs once is not worth compiling; the commands end this policy (src/server/cli).
      jitPolicy: START_JIT_POLICY,
      // Bun validates the name, and lists the valid ones.
      ...(target === undefined ? {} : { target: target as Bun.Build.CompileTarget }),
      ...(existsSync(runtime) ? { executablePath: runtime } : {}),
    },
    format: "esm",
    bytecode: values.bytecode,
    plugins: [queryTexts, uncalled, packedTexts, embeddedFiles],
    throw: false,
  });
  for (const log of built.logs) console.error(String(log));
  if (!built.success) process.exit(1);
}

const outfile = resolve(values.outfile);
const startedAt = performance.now();
await compile(outfile, values.target);
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
console.log(`${describe(outfile)}, built in ${seconds} s`);
if (values.zst) {
  const packed = `${outfile}.zst`;
  const compress = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: RELEASE_LEVEL } });
  await pipeline(createReadStream(outfile), compress, createWriteStream(packed));
  console.log(describe(packed));
}

function describe(file: string): string {
  return `${relative(process.cwd(), file)}: ${Math.round(statSync(file).size / BYTES_PER_MIB)} MiB`;
}
