import { beforeAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { unpackTar } from "modern-tar";
import { compiler, OLDER_TYPESCRIPTS } from "../../../scripts/typescript.ts";
import { blocksOf, GUIDE, TYPESCRIPT_OPTIONS } from "../../support/guide.ts";
import { temporaryDirectory, testPlatform } from "../../support/index.ts";

// The configs of the guide, in a project that has nothing but the package.

/** From its sources, a server builds the package when it is asked for it. */
const BUILD_TIMEOUT_MS = 180_000;
/** The types of Bun that configs of the guide use. */
const ENVIRONMENT = `declare const process: { env: Record<string, string | undefined> };
interface ImportMeta { dir: string }
`;

const directory = temporaryDirectory();
const configs: string[] = [];

function write(path: string, content: string | Uint8Array): void {
  const file = join(directory, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

beforeAll(async () => {
  const platform = await testPlatform({ config: "{}" });
  const packed = await platform.fetch("/client/platform.tgz", { decompress: false } as RequestInit);
  for (const { header, data } of await unpackTar(gunzipSync(new Uint8Array(await packed.arrayBuffer())))) {
    if (data !== undefined) write(header.name.replace(/^package\//, "node_modules/platform/"), data);
  }
  await platform.stop();
  write("package.json", JSON.stringify({ type: "module" }));
  write("environment.d.ts", ENVIRONMENT);
  for (const page of [...readdirSync(GUIDE).filter((name) => name.endsWith(".md")), "../README.md"]) {
    const found = blocksOf(page).filter(({ role, language }) => role === "platform.config.ts" && language === "ts");
    for (const [index, { text }] of found.entries()) {
      const path = `${page.replace("../", "")}/${index}.config.ts`;
      write(path, text);
      configs.push(path);
    }
  }
}, BUILD_TIMEOUT_MS);

for (const name of ["typescript", ...OLDER_TYPESCRIPTS] as const) {
  test(
    `[CF375] ${name}: every config of the guide is without a type error`,
    () => {
      expect(configs.length).toBeGreaterThan(25);
      const compilerOptions = { ...TYPESCRIPT_OPTIONS, types: [] };
      write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["environment.d.ts", ...configs] }));
      const { stdout } = Bun.spawnSync([...compiler(name), "-p", directory], { cwd: directory });
      expect(stdout.toString()).toBe("");
    },
    BUILD_TIMEOUT_MS,
  );
}
