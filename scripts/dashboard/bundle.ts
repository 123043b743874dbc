import { join } from "node:path";
import { ROOT } from "../client/entries.ts";
import { packed } from "../client/packing.ts";

const APP = join(ROOT, "src/admin/app");
const HASH_CHARACTERS = 12;

/** What `/admin` is served from: `index.html`, one script and one stylesheet that it names, and a chunk for each page. */
export async function buildDashboard(): Promise<Uint8Array> {
  // Comments and hashes have paths that count from it.
  process.chdir(ROOT);
  const { outputs } = await Bun.build({
    entrypoints: [join(APP, "main.tsx")],
    root: APP,
    target: "browser",
    format: "esm",
    splitting: true,
    minify: true,
    define: { "process.env.NODE_ENV": '"production"' },
    naming: { entry: "chunk-[name]-[hash].[ext]", chunk: "chunk-[hash].[ext]", asset: "chunk-[name]-[hash].[ext]" },
  });
  const files = new Map<string, Uint8Array>();
  const styles: string[] = [];
  let script = "";
  for (const output of outputs) {
    if (output.path.endsWith(".css")) {
      const css = await output.text();
      // The app's own is first: pages count on it.
      if (output.path.includes("main")) styles.unshift(css);
      else styles.push(css);
      continue;
    }
    const name = output.path.replace(/^\.\//, "");
    files.set(name, new Uint8Array(await output.arrayBuffer()));
    if (output.kind === "entry-point") script = name;
  }
  // One for all pages: a chunk does not load a stylesheet.
  const style = new TextEncoder().encode(styles.join("\n"));
  const styleName = `chunk-${hashOf(style)}.css`;
  files.set(styleName, style);
  const template = await Bun.file(join(APP, "index.html")).text();
  const page = template.replace("{{script}}", script).replace("{{style}}", styleName);
  return packed(new Map([["index.html", new TextEncoder().encode(page)], ...files]));
}

const hashOf = (content: Uint8Array): string =>
  new Bun.CryptoHasher("sha256").update(content).digest("hex").slice(0, HASH_CHARACTERS);
