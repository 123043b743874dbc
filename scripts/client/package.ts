import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { packTar } from "modern-tar";
import { VERSION } from "../../src/kernel/version.ts";
import { llmsText } from "../../src/server/areas/site/guide/llms.ts";
import { guideOf } from "../../src/server/areas/site/guide/source.ts";
import { noticesOf } from "../notices.ts";
import { bundleClient } from "./bundle.ts";
import { PACKAGE_ENTRIES, ROOT, SOURCES } from "./entries.ts";
import { packageTypes } from "./types.ts";

// The npm package `platform`. Its build is reproducible, so that the integrity in a lockfile stays that of the version: names are
// sorted, times are fixed, and libdeflate compresses equally on every machine.

const COMPRESSION_LEVEL = 12;
/** The time of files in npm's own packages. */
const PACKED_AT = new Date("1985-10-26T08:15:00Z");

/** Builds the npm package as a gzipped tar. */
export async function buildPackage(): Promise<Uint8Array> {
  const sorted = [...(await packageFiles())].sort(([one], [other]) => (one < other ? -1 : 1));
  const entries = sorted.map(([path, body]) => ({
    header: {
      name: `package/${path}`,
      size: Buffer.byteLength(body),
      mtime: PACKED_AT,
      mode: 0o644,
      type: "file" as const,
    },
    body,
  }));
  const tar = await packTar(entries);
  return Bun.gzipSync(new Uint8Array(tar), { library: "libdeflate", level: COMPRESSION_LEVEL });
}

async function packageFiles(): Promise<Map<string, string | Uint8Array>> {
  const bundle = await bundleClient(Object.values(PACKAGE_ENTRIES), { root: SOURCES, minify: false });
  const types = packageTypes();
  const files = new Map<string, string | Uint8Array>(
    [...bundle.files].map(([path, content]) => [
      `dist/${path}`,
      path === HOOKS ? `"use client";\n${new TextDecoder().decode(content)}` : content,
    ]),
  );
  for (const [path, text] of types.files) files.set(path, text);
  // Beside the declarations of the same name, where a resolver without support for `exports` finds them too.
  for (const [name, source] of Object.entries(PACKAGE_ENTRIES)) {
    const target = relative(SOURCES, source).replace(/\.tsx?$/, ".js");
    files.set(`${name}.js`, `export * from "./dist/${target}";\n`);
  }
  const bundled = bundledPackages(Object.keys(bundle.metafile.inputs));
  const guide = guideOf(join(ROOT, "docs"));
  for (const [name, text] of guide) files.set(`docs/${name}`, text);
  files.set("docs/llms.txt", llmsText(guide, "."));
  files.set("THIRD-PARTY.txt", noticesOf([...new Set([...bundled, ...types.packages])].sort()));
  files.set("LICENSE", readFileSync(join(ROOT, "LICENSE"), "utf8"));
  files.set("README.md", README);
  files.set("package.json", `${JSON.stringify(MANIFEST, null, 2)}\n`);
  return files;
}

/** The file that needs the directive, which the bundler drops: without it frameworks with server components refuse the hooks. */
const HOOKS = "client/react/index.js";

/** Returns the packages that a bundle contains. */
const bundledPackages = (inputs: readonly string[]): string[] =>
  inputs.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);

const entryOf = (name: string) => ({ types: `./${name}.d.ts`, default: `./${name}.js` });

const MANIFEST = {
  name: "platform",
  version: VERSION,
  description: "The typed client of Platform, and the types of its config",
  license: "MIT",
  type: "module",
  sideEffects: false,
  main: "./index.js",
  types: "./index.d.ts",
  exports: {
    ...Object.fromEntries(
      Object.keys(PACKAGE_ENTRIES).map((name) => [name === "index" ? "." : `./${name}`, entryOf(name)]),
    ),
    // Resolves Elysia for this package's declarations where Elysia is not installed.
    "./elysia": { types: "./elysia.d.ts" },
    "./package.json": "./package.json",
  },
  peerDependencies: { react: ">=18" },
  peerDependenciesMeta: { react: { optional: true } },
};

const README = `# platform

The typed client of a Platform server, which serves this package at \`/client/platform.tgz\`, and the types of its config.

\`\`\`ts
import { createClient } from "platform/client";
import type config from "./platform.config.ts";

const client = createClient<typeof config>({ url: "http://127.0.0.1:8787" });
\`\`\`

Entries: \`platform\` (what a config imports), \`platform/client\`, \`platform/admin\` (for servers, with a service key),
\`platform/react\`. It has no dependencies. \`docs\` has the guide, and \`docs/llms.txt\` its list with notes for language models.
`;
