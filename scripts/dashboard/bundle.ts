import { join } from "node:path";
import { PurgeCSS } from "purgecss";
import { ROOT } from "../client/entries.ts";
import { shorten } from "../client/module.ts";
import { FOR_BROWSERS, packed } from "../client/packing.ts";

const APP = join(ROOT, "src/dashboard");
const HASH_CHARACTERS = 12;

/** Bundles the dashboard: its entry, and a chunk for each page. */
export async function bundleDashboard(): Promise<Bun.BuildOutput> {
  // Comments and hashes contain paths relative to the working directory.
  process.chdir(ROOT);
  return Bun.build({
    entrypoints: [join(APP, "main.tsx")],
    root: APP,
    target: "browser",
    format: "esm",
    splitting: true,
    minify: true,
    define: { "process.env.NODE_ENV": '"production"' },
    naming: { entry: "chunk-[name]-[hash].[ext]", chunk: "chunk-[hash].[ext]", asset: "chunk-[name]-[hash].[ext]" },
    metafile: true,
  });
}

/**
 * Builds the pack behind `/admin`: `index.html`, its script and stylesheet, and a chunk for each page. `isShort`: takes some
 * seconds more, for scripts that are 3 % shorter.
 */
export async function buildDashboard({ isShort = false }: { isShort?: boolean } = {}): Promise<Uint8Array> {
  const { outputs } = await bundleDashboard();
  const files = new Map<string, Uint8Array>();
  const styles: string[] = [];
  const scripts: string[] = [];
  let script = "";
  // The bundler returns stylesheets in another order each time.
  for (const output of outputs.toSorted((one, other) => (one.path < other.path ? -1 : 1))) {
    if (output.path.endsWith(".css")) {
      const css = await output.text();
      // The app's stylesheet comes first: pages depend on it.
      if (output.path.includes("main")) styles.unshift(css);
      else styles.push(css);
      continue;
    }
    const name = output.path.replace(/^\.\//, "");
    const content = new Uint8Array(await output.arrayBuffer());
    files.set(name, isShort ? await shorten(content) : content);
    scripts.push(await output.text());
    if (output.kind === "entry-point") script = name;
  }
  // One stylesheet for all pages: a chunk does not load one.
  const style = new TextEncoder().encode(await withoutUnused(styles.join("\n"), scripts));
  const styleName = `chunk-${hashOf(style)}.css`;
  files.set(styleName, style);
  const template = await Bun.file(join(APP, "index.html")).text();
  const page = template.replace("{{script}}", script).replace("{{style}}", styleName);
  return packed(new Map([["index.html", new TextEncoder().encode(page)], ...files]), FOR_BROWSERS);
}

/**
 * Removes the rules of components that no script uses: a third of the stylesheet. The component library names their classes by
 * hashes, such as `m_77c9d27d`; scripts may compose other names, which stay.
 */
async function withoutUnused(style: string, scripts: readonly string[]): Promise<string> {
  const attributes = new Set([...style.matchAll(/\[([\w-]+)/g)].flatMap(([, name]) => name ?? []));
  const [purged] = await new PurgeCSS().purge({
    content: scripts.map((raw) => ({ raw, extension: "js" })),
    css: [{ raw: style }],
    dynamicAttributes: [...attributes],
    safelist: [/^(?!m_)/],
  });
  if (purged === undefined) throw new Error("the stylesheet of the dashboard could not be reduced");
  return purged.css;
}

const hashOf = (content: Uint8Array): string =>
  new Bun.CryptoHasher("sha256").update(content).digest("hex").slice(0, HASH_CHARACTERS);
