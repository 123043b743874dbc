import { join } from "node:path";
import { bundleModule } from "./module.ts";
import { gzipped as asGzip } from "./packing.ts";

// One of the checks of `npm run check`: the size of what a page loads of the client, minified and gzipped as a server sends it.
// `--parts` lists its parts.

const BYTES_PER_KB = 1000;
const KB_DIGITS = 1;
const BASE_MAX_BYTES = 15.0 * BYTES_PER_KB;
const ALL_MAX_BYTES = 30.0 * BYTES_PER_KB;

/** Matches the sources that are loaded when a live query begins. */
const LIVE = /^src\/client\/(?:live|socket)\//;

export interface ClientSize {
  what: string;
  bytes: number;
  maxBytes: number;
}

export interface MeasuredClient {
  sizes: readonly ClientSize[];
  /** The sizes by file. */
  parts: readonly string[];
}

export async function measureClient(): Promise<MeasuredClient> {
  const { files, metafile } = await bundleModule();
  const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [join(".", path), output]));
  const gzipped = (path: string): number => asGzip(files.get(path) ?? new Uint8Array()).length;
  const total = (paths: Iterable<string>): number => [...paths].map(gzipped).reduce((sum, bytes) => sum + bytes, 0);

  const base = new Set<string>();
  /** Loads a file of the bundle and its static imports. */
  const load = (path: string): void => {
    if (base.has(path)) return;
    base.add(path);
    for (const { path: target, kind } of outputs.get(path)?.imports ?? []) {
      if (kind !== "dynamic-import") load(join(".", target));
    }
  };
  load("index.js");
  for (const [path, { entryPoint }] of outputs) if (entryPoint !== undefined && LIVE.test(entryPoint)) load(path);

  const parts = [...outputs].flatMap(([path, { inputs }]) => {
    const largest = Object.entries(inputs).sort(([, one], [, other]) => other.bytesInOutput - one.bytesInOutput);
    const title = `${path}: ${gzipped(path)} bytes gzipped${base.has(path) ? ", for tables, sign-in and live queries" : ""}`;
    return [title, ...largest.map(([input, { bytesInOutput }]) => `  ${bytesInOutput} ${input}`)];
  });
  return {
    sizes: [
      { what: "tables, sign-in and live queries", bytes: total(base), maxBytes: BASE_MAX_BYTES },
      { what: "everything", bytes: total(outputs.keys()), maxBytes: ALL_MAX_BYTES },
    ],
    parts,
  };
}

const inKb = (bytes: number): string => `${(bytes / BYTES_PER_KB).toFixed(KB_DIGITS)} KB`;

if (import.meta.main) {
  const { sizes, parts } = await measureClient();
  const isLarge = sizes.some(({ bytes, maxBytes }) => bytes > maxBytes);
  for (const { what, bytes, maxBytes } of sizes) {
    console.log(`note: the client takes ${inKb(bytes)} of ${inKb(maxBytes)} for ${what}`);
  }
  if (isLarge || process.argv.includes("--parts")) console.log(parts.join("\n"));
  process.exit(isLarge ? 1 : 0);
}
