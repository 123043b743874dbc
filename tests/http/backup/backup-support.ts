import { platformCommand, temporaryDirectory, testEnvironment } from "../../support/index.ts";

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a command of the program under test to its end. */
export async function runCommand(args: readonly string[], cwd: string = temporaryDirectory()): Promise<Ended> {
  const child = startCommand(args, cwd);
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

export function startCommand(args: readonly string[], cwd: string = temporaryDirectory()) {
  return Bun.spawn([...platformCommand(), ...args], {
    cwd,
    env: testEnvironment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}
