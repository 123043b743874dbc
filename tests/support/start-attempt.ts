import { platformCommand, testEnvironment } from "./platform.ts";

const GIVE_UP_MS = 20_000;
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

export interface StartAttempt {
  /** Whether the server listened, and was then stopped with SIGTERM. */
  hasStarted: boolean;
  exitCode: number;
  stderr: string;
}

/** Runs `platform start` until it listens, ends or is killed. `prefix`: a command that runs it. */
export async function attemptStart(options: {
  configFile: string;
  dataDirectory: string;
  prefix?: readonly string[];
  killAfterMs?: number;
}): Promise<StartAttempt> {
  const { configFile, dataDirectory, prefix = [], killAfterMs = GIVE_UP_MS } = options;
  const command = ["start", "--config", configFile, "--data", dataDirectory, "--port", "0"];
  const child = Bun.spawn([...prefix, ...platformCommand(), ...command], {
    ...{ env: testEnvironment(), stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  let hasStarted = false;
  const listen = async () => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      if (hasStarted || !text.includes("platform listening on ")) continue;
      hasStarted = true;
      child.kill("SIGTERM");
    }
  };
  const [stderr] = await Promise.all([new Response(child.stderr).text(), listen()]);
  const exitCode = await child.exited;
  clearTimeout(timer);
  return { hasStarted, exitCode, stderr };
}

/** Command prefix that runs a program as nobody: file modes do not limit root. */
export const AS_NOBODY: readonly string[] = isRoot
  ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"]
  : [];

/** Returns whether the program under test can be run that way. */
export function canRunAsNobody(): boolean {
  if (process.platform === "win32") return false;
  return Bun.spawnSync([...AS_NOBODY, ...platformCommand(), "--version"], { env: testEnvironment() }).success;
}

/** Id of the owner of files that such a server may write. */
export const NOBODY_ID = isRoot ? NOBODY : (process.getuid?.() ?? NOBODY);
