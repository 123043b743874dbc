import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { compiler } from "../../scripts/typescript.ts";
import { platformCommand, SERVICE_KEY, type TestPlatform, temporaryDirectory, testPlatform } from "./platform.ts";

// Runs the example of a page of the guide. Its parts are fenced blocks, in order:
//
//   ```ts platform.config.ts   a config: starts a server with it, or restarts it with the new one
//   ```sh run                  commands; variables stay set for the blocks that follow
//   ```js run                  a script for Bun or Node 22
//   ```ts run                  a program, which TypeScript checks first: it may import the config's types
//   ```tsx web/app.tsx         a file beside the config
//   ```json answer             what the block before printed last, as JSON; "…" stands for any value
//   ```text answer             the same, as text
//
// Blocks without such a word are not run. Commands run beside the config and its `data`, with `platform` in their PATH. The
// guide's address, http://127.0.0.1:8787, becomes that of the server.

export const GUIDE = resolve(import.meta.dir, "../../docs");
const ADDRESS = /(http|ws):\/\/127\.0\.0\.1:8787/g;
const BLOCK = /^```(?<language>\w+) (?<role>run|answer|[\w./-]+\.\w+)\n(?<text>[\s\S]*?)^```$/gm;

interface Block {
  language: string;
  /** Role of the block: `run`, `answer`, or the path of a file. */
  role: string;
  text: string;
}

export interface Answered {
  /** Text of the block, as the page shows it. */
  shown: string;
  printed: unknown;
  expected: unknown;
}

export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(GUIDE, page), "utf8");
  return [...text.matchAll(BLOCK)].map(({ groups }) => ({ ...groups }) as unknown as Block);
}

/**
 * Runs a page's example. Returns what each block with an answer printed, and what the page says. Errors: a command that fails.
 */
export async function runExample(page: string): Promise<Answered[]> {
  const directory = temporaryDirectory();
  const answered: Answered[] = [];
  let platform: TestPlatform | null = null;
  let printed = "";
  try {
    for (const { language, role, text } of blocksOf(page)) {
      if (role === "platform.config.ts") {
        if (platform === null) platform = await testPlatform({ config: text });
        else await restart(directory, platform, text);
        requireNoWarning(page, platform);
      } else if (role === "run") {
        if (platform === null) throw new Error(`docs/${page} has no config before its first command`);
        printed = await run(directory, language, text, platform);
      } else if (role !== "answer") {
        if (platform === null) throw new Error(`docs/${page} has no config before its first file`);
        writeBeside(platform, role, text);
      } else {
        answered.push({ shown: text, ...compared(language, text, printed) });
      }
    }
  } finally {
    await platform?.stop();
  }
  return answered;
}

/**
 * Expects no warnings. Tables without rules are deliberate, as the pages use the service key; so are variables for which the
 * config has a default.
 */
function requireNoWarning(page: string, platform: TestPlatform): void {
  const warnings = platform.stderr().match(/"config: [^\n]*?"(?=,)/g) ?? [];
  const slips = warnings.filter((warning) => !/has no access|process\.env not set/.test(warning));
  if (slips.length > 0) throw new Error(`A config of docs/${page} has a warning: ${slips.join(", ")}`);
}

/** Restarts the server, and updates the port in variables of earlier blocks. */
async function restart(directory: string, platform: TestPlatform, config: string): Promise<void> {
  const { url } = platform;
  await platform.restart({ config });
  const variables = join(directory, "variables");
  writeFileSync(variables, readFileSync(variables, "utf8").replaceAll(url, platform.url));
}

function writeBeside(platform: TestPlatform, path: string, text: string): string {
  const file = join(dirname(platform.configFile), path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, withAddress(text, platform));
  return file;
}

const withAddress = (text: string, platform: TestPlatform): string =>
  text.replace(ADDRESS, (_, scheme: string) => platform.url.replace("http", scheme));

/** Compiler options: strict, and only with packages that the example installs. */
export const TYPESCRIPT_OPTIONS = {
  target: "ESNext",
  module: "Preserve",
  moduleResolution: "bundler",
  lib: ["ESNext", "DOM", "DOM.Iterable"],
  jsx: "react-jsx",
  types: [],
  noEmit: true,
  allowImportingTsExtensions: true,
  strict: true,
  skipLibCheck: true,
};

/** Type checks a program. Throws TypeScript's messages. */
function checkTypes(file: string): void {
  const config = join(dirname(file), "tsconfig.guide.json");
  writeFileSync(config, JSON.stringify({ compilerOptions: TYPESCRIPT_OPTIONS, files: [file] }));
  const { exitCode, stdout } = Bun.spawnSync([...compiler(), "-p", config]);
  if (exitCode !== 0) throw new Error(`TypeScript refuses an example:\n${stdout}`);
}

async function run(directory: string, language: string, text: string, platform: TestPlatform): Promise<string> {
  const script = withAddress(text, platform);
  const isTyped = language === "ts";
  const file = isTyped
    ? writeBeside(platform, "example.ts", text)
    : join(directory, `example.${language === "sh" ? "sh" : "mjs"}`);
  if (isTyped) checkTypes(file);
  const variables = join(directory, "variables");
  writeFileSync(variables, "", { flag: "a" });
  // Assigned variables are exported and saved for the next block.
  const shell = `set -ea\n. "${variables}"\n${script}\nexport -p > "${variables}"\n`;
  if (!isTyped) writeFileSync(file, language === "sh" ? shell : script);
  const load = `set -a; . "${variables}"; exec "$0" "$1"`;
  const command = language === "sh" ? ["bash", file] : ["bash", "-c", load, process.execPath, file];
  const programs = join(directory, "programs");
  mkdirSync(programs, { recursive: true });
  const program = platformCommand()
    .map((part) => `"${part}"`)
    .join(" ");
  writeFileSync(join(programs, "platform"), `#!/bin/sh\nexec ${program} "$@"\n`, { mode: 0o755 });
  const child = Bun.spawn(command, {
    cwd: dirname(platform.configFile),
    env: { ...process.env, PATH: `${programs}:${process.env["PATH"]}`, PLATFORM_SERVICE_KEY: SERVICE_KEY },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`The example ended with ${code}:\n${script}\n${output}\n${errors}`);
  return output;
}

function compared(language: string, text: string, printed: string): Pick<Answered, "printed" | "expected"> {
  if (language !== "json") return { printed: printed.trim(), expected: text.trim() };
  const last = printed.trim().split("\n").at(-1) ?? "";
  const expected: unknown = JSON.parse(text);
  return { printed: withWildcards(JSON.parse(last), expected), expected };
}

/** Replaces values with "…" wherever the expected value has it. */
function withWildcards(value: unknown, expected: unknown): unknown {
  if (expected === "…" && value !== undefined) return "…";
  if (Array.isArray(value) && Array.isArray(expected)) return value.map((one, i) => withWildcards(one, expected[i]));
  if (typeof value !== "object" || value === null || typeof expected !== "object" || expected === null) return value;
  const members = expected as Record<string, unknown>;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withWildcards(one, members[name])]));
}
