import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const SERVICE_KEY = "bench-service-key-0123456789abcdefghijklmnop";
export const JWT_SECRET = "bench-jwt-secret-0123456789-abcdefghijklmnop";
const START_TIMEOUT_MS = 20_000;
const FLOOR = resolve(import.meta.dir, "../floor.ts");

export interface Running {
  url: string;
  pid: number;
  /** Stops the process with SIGTERM, and waits for its exit. */
  stop(): Promise<void>;
}

/** Starts a server, and waits for its line `… listening on http://…`. */
async function startServer(command: readonly string[], cwd: string): Promise<Running> {
  const env = {
    ...process.env,
    NODE_ENV: "production",
    PLATFORM_SERVICE_KEY: SERVICE_KEY,
    PLATFORM_JWT_SECRET: JWT_SECRET,
  };
  const child = Bun.spawn([...command], { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  const timer = setTimeout(() => child.kill("SIGKILL"), START_TIMEOUT_MS);
  const decoder = new TextDecoder();
  const reader = child.stdout.getReader();
  let output = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`${command.join(" ")} did not start: ${output}`);
    output += decoder.decode(value, { stream: true });
    const url = /listening on (https?:\/\/[^\s/]+)/.exec(output)?.[1];
    if (url === undefined) continue;
    clearTimeout(timer);
    return {
      url,
      pid: child.pid,
      async stop() {
        child.kill("SIGTERM");
        await child.exited;
      },
    };
  }
}

/** A config without further processes, unless the measured one asks for them: its figures are those of one process. */
const ALONE = `import measured from "./measured.config.ts";

export default { ...measured, server: { workers: 0, ...measured.server } };
`;

/** Starts the compiled executable with this config, and its data in `directory`. Workers start only if the config asks for them. */
export function startPlatform(executable: string, directory: string, config: string): Promise<Running> {
  const configFile = join(directory, "platform.config.ts");
  writeFileSync(join(directory, "measured.config.ts"), config);
  writeFileSync(configFile, ALONE);
  const data = join(directory, "data");
  return startServer([executable, "start", "--config", configFile, "--data", data, "--port", "0"], directory);
}

/** Starts the compiled executable with an existing config. */
export function startConfigured(
  executable: string,
  { cwd, config, data }: { cwd: string; config: string; data: string },
): Promise<Running> {
  const args = ["start", "--config", config, "--data", data, "--host", "127.0.0.1", "--port", "0"];
  return startServer([executable, ...args], cwd);
}

/** Starts the floor on the same database file; by default the `program` is that of tables. */
export function startFloor(file: string, directory: string, program: string = FLOOR): Promise<Running> {
  return startServer([process.execPath, program, file, directory], directory);
}

/**
 * Returns the memory of a process in bytes, of which pages that several processes share count in parts (PSS). Resident memory where the
 * system does not say that.
 */
export function proportionalBytes(pid: number): number {
  const rollup = `/proc/${pid}/smaps_rollup`;
  if (!existsSync(rollup)) return residentBytes(pid);
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(rollup, "utf8"))?.[1] ?? 0) * 1024;
}

/** Returns the resident memory of a process in bytes; `ps` reports KiB on Linux and macOS alike. */
export function residentBytes(pid: number): number {
  const { stdout } = Bun.spawnSync(["ps", "-o", "rss=", "-p", String(pid)]);
  return Number(stdout.toString().trim()) * 1024;
}
