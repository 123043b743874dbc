import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { generateAppPage } from "../scripts/app-reference.ts";
import { Platform } from "../src/server/config/sections/platform.ts";
import type { Shape } from "../src/server/config/shape/schema.ts";
import { GUIDE } from "./support/guide.ts";
import { platformCommand, testPlatform } from "./support/index.ts";

// The guide names what exists: each option of the config, each command with its options, each endpoint.

const page = (name: string): string => readFileSync(join(GUIDE, name), "utf8");

/** Code on the pages: blocks, and words in backticks. */
const codeOf = (text: string): string => (text.match(/```[\s\S]*?```|`[^`\n]+`/g) ?? []).join("\n");

const named = (code: string, name: string): boolean => new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(code);

/** Members of a file that others lay out. */
const FOREIGN = new Set(["push.fcm.serviceAccount.client_email", "push.fcm.serviceAccount.private_key"]);

/** Every option with its path, in which `*` stands for a name that the user chooses. */
function optionsOf(shape: Shape, path: readonly string[] = [], above: readonly Shape[] = []): string[][] {
  if (above.includes(shape)) return [];
  const below = [...above, shape];
  const members = Object.entries(shape.properties ?? {}).flatMap(([name, member]) => [
    [...path, name],
    ...optionsOf(member, [...path, name], below),
  ]);
  const entries = [shape["~entry"], shape.items].flatMap((entry) =>
    entry === undefined ? [] : optionsOf(entry, [...path, "*"], below),
  );
  return [...members, ...entries, ...(shape.anyOf ?? []).flatMap((either) => optionsOf(either, path, below))];
}

test("docs/configuration.md names every option of the config", () => {
  const code = codeOf(page("configuration.md"));
  const options = optionsOf(Platform as Shape);
  expect(options.length).toBeGreaterThan(250);
  const missing = options.filter((path) => !named(code, path.at(-1) ?? "")).map((path) => path.join("."));
  expect([...new Set(missing)].filter((path) => !FOREIGN.has(path))).toEqual([]);
});

const help = (...args: string[]): string => Bun.spawnSync([...platformCommand(), ...args, "--help"]).stdout.toString();

test("docs/command-line.md names every command and every option", () => {
  const code = codeOf(page("command-line.md"));
  const [, listed = ""] = help().split("\nCommands:\n");
  const commands = [...listed.matchAll(/^ {2}([a-z-]+)/gm)].map(([, command = ""]) => command);
  expect(commands.length).toBeGreaterThan(15);
  const missing = commands.flatMap((command) => {
    const options = [...help(command).matchAll(/^ +(--[a-z-]+)/gm)].map(([, option = ""]) => option);
    return [`platform ${command}`, ...options]
      .filter((name) => !named(code, name))
      .map((name) => `${command}: ${name}`);
  });
  expect(missing).toEqual([]);
}, 60_000);

/** The last words of a path that its page needs to show: `PATCH …/metadata` is enough of a path with a bucket and a key. */
const lastWords = (path: string): string => path.split("/").findLast((part) => !part.startsWith("{")) ?? "";

interface Operation {
  responses: Record<string, unknown>;
}

async function describedPaths(): Promise<Record<string, Record<string, Operation>>> {
  const platform = await testPlatform({
    config: `{
      databases: { shared: { tables: { notes: {} } }, clubs: { instance: true, tables: { notes: {} } } },
      storage: { buckets: { files: {} } }, kv: { a: {} }, d1: { a: {} }, vectorize: { a: { dimensions: 2 } }, rooms: { a: {} },
    }`,
  });
  const { body } = await platform.get<{ paths: Record<string, Record<string, Operation>> }>("/swagger/json");
  await platform.stop();
  return body.paths;
}

test("the guide names every endpoint", async () => {
  const pages = [...new Bun.Glob("*.md").scanSync(GUIDE)].filter((name) => name !== "security.md");
  const code = codeOf(pages.map(page).join("\n"));
  const paths = Object.keys(await describedPaths());
  expect(paths.length).toBeGreaterThan(100);
  expect(paths.filter((path) => !named(code, lastWords(path)))).toEqual([]);
});

test("docs/http.md explains every status of an error", async () => {
  const operations = Object.values(await describedPaths()).flatMap((methods) => Object.values(methods));
  const statuses = new Set(operations.flatMap(({ responses }) => Object.keys(responses)));
  const explained = [...page("http.md").matchAll(/^\| (\d{3}) +\|/gm)].map(([, status = ""]) => status);
  expect([...statuses].filter((status) => Number(status) >= 400 && !explained.includes(status))).toEqual([]);
});

test("CHANGELOG.md has the version of package.json, and nothing twice", async () => {
  const text = page("../CHANGELOG.md");
  const { version } = await Bun.file(join(GUIDE, "../package.json")).json();
  const versions = [...text.matchAll(/^## (\S+)/gm)].map(([, name]) => name);
  expect(versions).toContain(version);
  const lines = [...versions, ...text.split("\n").filter((line) => line.length > 40)];
  expect(lines.filter((line, at) => lines.indexOf(line) !== at)).toEqual([]);
});

test("[CF214] the page of app matches the declarations (bun scripts/app-reference.ts writes it)", () => {
  const reference = generateAppPage();
  expect(page("app.md")).toBe(reference);
  for (const name of ["AppAccess", "UserAccess", "TableAccessor", "TransactionTable", "UsersAccessor", "HookContext"]) {
    expect(reference).toContain(`\n## ${name}\n`);
  }
});
