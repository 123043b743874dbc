import { beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { compiler, OLDER_TYPESCRIPTS } from "../../../scripts/typescript.ts";
import { blocksOf, GUIDE, TYPESCRIPT_OPTIONS } from "../../support/guide.ts";
import { type TypedProject, typedProject } from "../../support/typed-project.ts";

// The configs of the guide, in a project that has nothing but the package.

/** From its sources, a server builds the package when it is asked for it. */
const BUILD_TIMEOUT_MS = 180_000;
const configs: string[] = [];
let project: TypedProject;

beforeAll(async () => {
  project = await typedProject();
  for (const page of [...readdirSync(GUIDE).filter((name) => name.endsWith(".md")), "../README.md"]) {
    const found = blocksOf(page).filter(({ role, language }) => role === "platform.config.ts" && language === "ts");
    for (const [index, { text }] of found.entries()) {
      const path = `${page.replace("../", "")}/${index}.config.ts`;
      project.write(path, text);
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
      project.write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["environment.d.ts", ...configs] }));
      const { stdout } = Bun.spawnSync([...compiler(name), "-p", project.directory], { cwd: project.directory });
      expect(stdout.toString()).toBe("");
    },
    BUILD_TIMEOUT_MS,
  );
}
