import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Glob } from "bun";
import { compiler } from "../../../scripts/typescript.ts";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";
import { agent } from "../../support/mcp.ts";
import { typedProject } from "../../support/typed-project.ts";
import { until } from "../../support/until.ts";

// What language models get: the list, the pages, the notes of `init --agents`, and tools.

const DOCS = resolve(import.meta.dir, "../../../docs");
const NAMES = [...new Glob("**/*.md").scanSync({ cwd: DOCS })].sort();
const BUILD_TIMEOUT_MS = 180_000;

let developed: TestPlatform;
beforeAll(async () => {
  developed = await testPlatform({ config: "{}", command: "dev" });
});
afterAll(() => developed.stop());

/** Configs in a text, as the guide marks them. */
const configsIn = (text: string): string[] =>
  [...text.matchAll(/^```ts platform\.config\.ts\n([\s\S]*?)^```$/gm)].map(([, config = ""]) => config);

test("[CL457] dev serves the list, and each page of it as Markdown", async () => {
  const answer = await fetch(`${developed.url}/docs/llms.txt`);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/markdown; charset=utf-8"]);
  const text = await answer.text();
  const links = [...text.matchAll(/^- \[.+\]\((\S+\.md)\)/gm)].map(([, link = ""]) => link);
  const listed = NAMES.filter((name) => name !== "README.md" && name !== "agents.md");
  expect(links.sort()).toEqual(listed.map((name) => `/docs/${name}`).sort());
  for (const link of links) {
    const page = await fetch(`${developed.url}${link}`);
    expect([link, page.status, page.headers.get("vary")]).toEqual([link, 200, "Accept"]);
    expect(await page.text()).toBe(readFileSync(join(DOCS, link.slice("/docs/".length)), "utf8"));
  }
  const browser = await fetch(`${developed.url}/docs/tables.md`, { headers: { accept: "text/html,*/*" } });
  expect(await browser.text()).toContain("<h1");
});

test("[CL457] a server that dev has not started has neither", async () => {
  const served = await testPlatform({ config: "{ mcp: true }" });
  for (const name of ["llms.txt", "tables.md"]) expect((await fetch(`${served.url}/docs/${name}`)).status).toBe(404);
  await served.stop();
});

test(
  "[CL457] the npm package has the list and the pages",
  async () => {
    const { directory } = await typedProject();
    const docs = join(directory, "node_modules/platform/docs");
    const list = readFileSync(join(docs, "llms.txt"), "utf8");
    const links = [...list.matchAll(/^- \[.+\]\((\S+\.md)\)/gm)].map(([, link = ""]) => link);
    expect(links.length).toBe(NAMES.length - 2);
    expect(links.filter((link) => !existsSync(join(docs, link)))).toEqual([]);
    expect(readFileSync(join(docs, "tables.md"), "utf8")).toBe(readFileSync(join(DOCS, "tables.md"), "utf8"));
  },
  BUILD_TIMEOUT_MS,
);

const run = (cwd: string, ...args: string[]) => {
  const child = Bun.spawnSync([...platformCommand(), ...args], { cwd, env: testEnvironment(), stdin: "ignore" });
  return { code: child.exitCode, output: child.stdout.toString() + child.stderr.toString() };
};

test("[CL459] init --agents writes notes of at most 150 lines, whose configs are right and compile", () => {
  const plain = temporaryDirectory();
  run(plain, "init");
  expect(readdirSync(plain)).not.toContain("AGENTS.md");

  const directory = temporaryDirectory();
  expect(run(directory, "init", "--agents").output).toContain("wrote AGENTS.md");
  const notes = readFileSync(join(directory, "AGENTS.md"), "utf8");
  expect(notes.split("\n").length).toBeLessThanOrEqual(151);
  const configs = configsIn(notes);
  expect(configs.length).toBeGreaterThan(0);
  for (const config of configs) {
    writeFileSync(join(directory, "platform.config.ts"), config);
    const { exitCode, stdout } = Bun.spawnSync([...compiler(), "-p", directory]);
    expect([exitCode, stdout.toString()]).toEqual([0, ""]);
    const checked = run(directory, "check");
    expect(checked.code).toBe(0);
    expect(checked.output).not.toContain("warning");
  }
  writeFileSync(join(directory, "AGENTS.md"), "mine");
  expect(run(directory, "init", "--agents").output).toContain("kept AGENTS.md");
  expect(readFileSync(join(directory, "AGENTS.md"), "utf8")).toBe("mine");
});

/** Address and key in the last line of `dev`, which is another one after each start. */
const connected = (text: string) => [...text.matchAll(/^mcp (\S+)\/mcp key (\S+)$/gm)].at(-1)?.slice(1) ?? [];

test("[CL458, MC12] an agent adds a table, a rule and a record by what the list and the tools say", async () => {
  const platform = await testPlatform({ config: "{}", command: "dev" });
  const [url = "", key = ""] = connected(platform.stdout());
  const connect = (address: string) => agent(address, { authorization: `Bearer ${key}` }, "?write=1");

  // All that it knows of configs is the example of the list, whose rules it keeps.
  const notes = await (await fetch(`${url}/docs/llms.txt`)).text();
  const source = configsIn(notes)[0] ?? "";
  expect((await connect(url).call("list_tables")).value).toEqual({ namespaces: {} });
  expect((await connect(url).call("check_config", { source: source.replace("databases", "database") })).isError).toBe(
    true,
  );
  expect((await connect(url).call("plan_config", { source })).isError).toBe(false);

  writeFileSync(platform.configFile, source);
  await until("dev has started again", () => connected(platform.stdout())[0] !== url);
  const [again = ""] = connected(platform.stdout());
  const { value } = await connect(again).call("list_tables");
  const { namespaces } = value as unknown as Schema;
  const [[namespace = "", { tables }]] = Object.entries(namespaces) as [[string, (typeof namespaces)[string]]];
  const [[table = "", { fields }]] = Object.entries(tables) as [[string, { fields: Record<string, Field> }]];

  // A record with a text in each field that it needs.
  const needed = Object.entries(fields).filter(([, field]) => field.required && field.default === undefined);
  expect(needed.length).toBeGreaterThan(0);
  const record = Object.fromEntries(needed.map(([name]) => [name, "ann"]));
  const inserted = await connect(again).call("insert_record", { namespace, table, record });
  expect(inserted.isError).toBe(false);
  const id = String(inserted.value["id"]);
  expect((await connect(again).call("get_record", { namespace, table, id })).value).toMatchObject(record);

  // The rule holds for everybody else.
  const tried = await connect(again).call("try_rule", { namespace, table, rule: "read", id, userId: "anonymous" });
  expect(tried.value).toMatchObject({ results: [{ allowed: false }] });
  expect((await fetch(`${again}/api/db/${namespace}/tables/${table}/${id}`)).status).toBe(401);
  await platform.stop();
}, 60_000);

interface Schema {
  namespaces: Record<string, { tables: Record<string, { fields: Record<string, Field> }> }>;
}

interface Field {
  type: string;
  required: boolean;
  default?: unknown;
}
