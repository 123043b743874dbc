import { expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ownChild } from "../../support/children.ts";
import {
  platformCommand,
  signIn,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
  until,
} from "../../support/index.ts";

// Variables of the file `.env`.

const CONFIG = `import { defineConfig } from "platform";
export default defineConfig({
  routes: (api) => api.get("/variable", () => process.env.SAID ?? "not set", { access: true }),
  databases: { shared: { tables: { [process.env.TABLE_NAME ?? "unnamed"]: {} } } },
});`;

/** A config in a folder with its variables; those of the folder above, and of its other files, are not for it. */
function project(variables: string): { above: string; config: string } {
  const above = temporaryDirectory();
  const folder = join(above, "club");
  mkdirSync(folder);
  writeFileSync(join(above, ".env"), "TABLE_NAME=of_the_working_directory\n");
  writeFileSync(join(folder, ".env"), variables);
  for (const name of [".env.local", ".env.production", ".env.development"]) {
    writeFileSync(join(folder, name), "TABLE_NAME=of_another_file\n");
    writeFileSync(join(above, name), "TABLE_NAME=of_another_file\n");
  }
  writeFileSync(join(folder, "platform.config.ts"), CONFIG);
  return { above, config: join("club", "platform.config.ts") };
}

function run(args: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const child = Bun.spawnSync([...platformCommand(), ...args], { cwd, env: testEnvironment(env), stdin: "ignore" });
  return { code: child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() };
}

const FILE = `# For development
export TABLE_NAME="films" # of the club
PLATFORM_DATA=stored
`;

test("[CL420] every command reads the .env beside the config, and the environment beats it", () => {
  const { above, config } = project(FILE);
  const ways: [given: readonly string[], env: Record<string, string>, table: string][] = [
    [["--config", config], {}, "films"],
    [[`--config=${config}`], {}, "films"],
    [[], { PLATFORM_CONFIG: config }, "films"],
    [["--config", config], { TABLE_NAME: "posters" }, "posters"],
  ];
  for (const [given, env, table] of ways) {
    expect(run(["check", ...given], above, env).stdout).toContain(`table ${table}: `);
  }
  writeFileSync(join(above, "films.ndjson"), '{ "title": "Heat" }\n');
  expect(run(["import", "shared/films", "films.ndjson", "--config", config], above)).toMatchObject({ code: 0 });
  // Of a command without a config as well: the directory is the one that `import` has made.
  const keys = run(["keys"], above, { PLATFORM_CONFIG: config });
  expect(keys.stderr).toContain("stored has no service key");
  const exported = run(["export", "shared/films", "--config", config, "--data", "stored"], above);
  expect(exported.stdout).toContain("Heat");
});

test("[CL420] a .env that cannot be read is named, and a missing one is none", () => {
  const { above, config } = project("");
  const file = join(above, "club", ".env");
  rmSync(file);
  expect(run(["check", "--config", config], above).stdout).toContain("table unnamed: ");
  mkdirSync(file);
  const refused = run(["check", "--config", config], above);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`${file} cannot be read`)]);
});

test("[CL420] dev reads .env again when it is made, changed and removed", async () => {
  const platform = await testPlatform({ command: "dev", config: CONFIG });
  const file = join(dirname(platform.configFile), ".env");
  const urls = () => [...platform.stdout().matchAll(/listening on (\S+)/g)].map((match) => match[1] ?? "");
  const said = async () => (await fetch(`${urls().at(-1)}/api/functions/variable`)).text();
  expect(await said()).toBe("not set");
  for (const [text, answer] of [
    ["SAID=first", "first"],
    ["SAID=second", "second"],
    [null, "not set"],
  ] as const) {
    const starts = urls().length;
    if (text === null) rmSync(file);
    else writeFileSync(file, text);
    await until("dev has started again", () => urls().length > starts);
    expect(await said()).toBe(answer);
  }
  expect(await platform.stop()).toBe(0);
});

test("[CL420] workers have the variables of the .env", async () => {
  const platform = await testPlatform({
    config: `{ server: { workers: 2 }, databases: { shared: { tables: { notes: { access: {
      insert: true, read: () => process.env.SAID === "the file" } } } } } }`,
    files: { ".env": "SAID=the file" },
  });
  const user = await signIn(platform);
  for (let count = 0; count < 60; count++) {
    const { status } = await user.get("/api/db/shared/tables/notes", { headers: { connection: "close" } });
    expect(status).toBe(200);
  }
  expect(await platform.stop()).toBe(0);
});

const READING = `import { defineConfig } from "platform";
import { more } from "./more.ts";
import "noisy";
const { TAKEN, RENAMED: renamed = "a default", ...others } = process.env;
const secret: string = process.env.SECRET ?? "a development secret"; // process.env.IN_A_COMMENT
const listed = [process.env["QUOTED"], process.env?.OPTIONAL, Bun.env.OF_BUN, import.meta.env.OF_META, process.env.SET];
const mode = process.env.NODE_ENV;
export default defineConfig({ routes: (api) => api.get("/a", () => process.env.IN_A_ROUTE ?? more, { access: true }) });`;

const UNSET = ["IMPORTED", "IN_A_ROUTE", "OF_BUN", "OF_META", "OPTIONAL", "QUOTED", "RENAMED", "SECRET", "TAKEN"];

function reading(): string {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, "node_modules/noisy"), { recursive: true });
  writeFileSync(join(directory, "node_modules/noisy/package.json"), '{ "name": "noisy", "main": "index.js" }');
  writeFileSync(join(directory, "node_modules/noisy/index.js"), "module.exports = process.env.OF_A_PACKAGE;");
  writeFileSync(join(directory, "more.ts"), "export const more: string = process.env.IMPORTED!;");
  writeFileSync(join(directory, ".env"), "SET=1\n");
  writeFileSync(join(directory, "platform.config.ts"), READING);
  return directory;
}

test("[CL421] check and start name the variables that the config reads and nobody has set", async () => {
  const directory = reading();
  const warning = `process.env: not set, and read: ${UNSET.join(", ")}`;
  const checked = run(["check"], directory);
  expect([checked.code, checked.stderr]).toEqual([0, `warning: ${warning}\n`]);
  const set = Object.fromEntries(UNSET.map((name) => [name, ""]));
  expect(run(["check"], directory, set)).toMatchObject({ code: 0, stderr: "" });

  const args = ["start", "--port", "0", "--data", join(temporaryDirectory(), "data")];
  const child = Bun.spawn([...platformCommand(), ...args], {
    ...{ cwd: directory, env: testEnvironment(), stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  });
  ownChild(child);
  const reader = child.stderr.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain(UNSET.join(", "));
  child.kill();
  expect(await child.exited).toBe(0);
});
