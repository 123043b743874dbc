import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DECLARATIONS_FILE, generateDeclarations } from "../../scripts/declarations.ts";

const starter = resolve(import.meta.dir, "starter");
const root = mkdtempSync(join(tmpdir(), "platform-starter-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const FILES = {
  "platform-config.txt": "platform.config.ts",
  "platform-declarations.txt": "platform.d.ts",
  "tsconfig.txt": "tsconfig.json",
};

function typesOf(change: (config: string) => string): { exitCode: number; output: string } {
  for (const [from, to] of Object.entries(FILES)) {
    const text = readFileSync(join(starter, from), "utf8");
    writeFileSync(join(root, to), to === "platform.config.ts" ? change(text) : text);
  }
  const tsc = resolve(import.meta.dir, "../../node_modules/.bin/tsc");
  const { exitCode, stdout } = Bun.spawnSync([tsc, "-p", root]);
  return { exitCode, output: stdout.toString() };
}

test("[CL10] the declarations are what the sources give (bun scripts/declarations.ts writes them)", () => {
  expect(readFileSync(DECLARATIONS_FILE, "utf8")).toBe(generateDeclarations());
});

test("[CL9] TypeScript accepts the starter with nothing beside it", () => {
  expect(typesOf((config) => config)).toEqual({ exitCode: 0, output: "" });
});

test("[CL9] secrets come from the environment, with and without the types of Node", () => {
  const secret = (config: string) =>
    config.replace("export default", 'export const secret: string = process.env.SECRET ?? "";\nexport default');
  expect(typesOf(secret)).toEqual({ exitCode: 0, output: "" });
  symlinkSync(resolve(import.meta.dir, "../../node_modules"), join(root, "node_modules"));
  const types = ["node", "bun-types"].map((name) => `/// <reference types="${name}" />\n`).join("");
  expect(typesOf((config) => types + secret(config))).toEqual({ exitCode: 0, output: "" });
});

test("[CL9] and sees in it what is wrong: the declarations are no blank cheque", () => {
  const { exitCode, output } = typesOf((config) =>
    config.replace("record.ownerId === auth?.id,", "record.owner === auth?.id,"),
  );
  expect(exitCode).not.toBe(0);
  expect(output).toContain("Property 'owner' does not exist");
});
