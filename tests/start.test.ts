import { expect, test } from "bun:test";
import { dirname, join, relative, resolve } from "node:path";

const root = resolve(import.meta.dir, "..");
const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });

/** Modules that `platform start` evaluates one after another; each is loaded by `import()`. */
const ENTRIES = [
  "src/main.ts",
  "src/server/cli/index.ts",
  "src/server/cli/serve/start.ts",
  "src/server/platform/open.ts",
];
/** scripts/build.ts replaces these modules by the texts of their queries. */
const isQueries = (path: string): boolean => /^src\/server\/areas\/\w+\/statements\//.test(path);

/** The packages that these modules import, directly or by others. Types are not imported, and `import()` comes later. */
async function packagesOf(entries: readonly string[]): Promise<Set<string>> {
  const packages = new Set<string>();
  const seen = new Set(entries);
  for (const path of seen) {
    if (!path.endsWith(".ts") || isQueries(path)) continue;
    const imported = transpiler.scanImports(await Bun.file(join(root, path)).text());
    for (const { path: target } of imported.filter(({ kind }) => kind === "import-statement")) {
      if (target.startsWith(".")) seen.add(relative(root, resolve(root, dirname(path), target)));
      else packages.add(/^(?:@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? target);
    }
  }
  return packages;
}

test("[SY320, MC16] a start evaluates no library that only some requests or configs need", async () => {
  const packages = await packagesOf(ENTRIES);
  const later = [
    "@babel/parser",
    "@elysiajs/swagger",
    "@fastify/busboy",
    "@modelcontextprotocol/sdk",
    "@peculiar/x509",
    "@simplewebauthn/server",
    "acme-client",
    "diff",
    "modern-tar",
    "nodemailer",
    "openid-client",
    "otpauth",
    "reflect-metadata",
    "web-push",
  ];
  expect(later.filter((name) => packages.has(name))).toEqual([]);
  // The walk does find what is imported.
  expect(packages).toContain("elysia");
  expect(packages).toContain("jose");
});
