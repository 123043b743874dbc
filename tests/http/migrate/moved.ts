import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs `platform migrate`. */
export async function migrate(...args: readonly string[]): Promise<Ended> {
  const child = Bun.spawn([...platformCommand(), "migrate", ...args], {
    cwd: temporaryDirectory(),
    env: testEnvironment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** Results of a move. */
export interface Moved {
  directory: string;
  config: string;
  report: string;
}

/** Moves a folder into a new one. Errors: the command fails. */
export async function moved(folder: string): Promise<Moved> {
  const directory = join(temporaryDirectory(), "app");
  const { code, stderr } = await migrate(folder, "--into", directory);
  if (code !== 0) throw new Error(`platform migrate ended with ${code}: ${stderr}`);
  const read = (name: string): string => readFileSync(join(directory, name), "utf8");
  return { directory, config: read("platform.config.ts"), report: read("report.md") };
}

/** Starts a server on what was moved. */
export const started = ({ directory, config }: Moved, env: Record<string, string> = {}): Promise<TestPlatform> =>
  testPlatform({ config, data: join(directory, "data"), env });
