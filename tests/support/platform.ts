import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { ownChild, removeDirectory, temporaryDirectory } from "./children.ts";
import { IS_CONTINUOUS, requireEqualRestore, withContinuous } from "./continuous.ts";
import { createHttpClient, type HttpClient } from "./http-client.ts";
import { clusterOfTwo, IS_CLUSTER, withCluster } from "./through-follower.ts";

export { temporaryDirectory };

/** Root service key of every platform under test; the token secret follows. */
export const SERVICE_KEY = "test-service-key-0123456789abcdefghijklmnop";
export const JWT_SECRET = "test-jwt-secret-0123456789-abcdefghijklmnop";

const MAIN = resolve(import.meta.dir, "../../src/main.ts");
/** A node that comes back waits until its former lease is over. */
const START_TIMEOUT_MS = 40_000;
const STOP_TIMEOUT_MS = 15_000;
const OUTPUT_KEPT_CHARACTERS = 256 * 1024;
const READY = /^platform listening on (https?:\/\/\S+)/m;
/** Directory with a certificate that every server under test then uses (tests/support/tls/everywhere.ts). */
const TLS_DIRECTORY = process.env["PLATFORM_TEST_TLS"] ?? "";
/** Workers of every server under test, where its config says nothing about them. */
const WORKERS = Number(process.env["PLATFORM_TEST_WORKERS"] ?? 0);

export interface TestPlatformOptions {
  /**
   * Config: a module's source text (with `export default`), the source text of the object alone (starting with `{`), or a plain
   * object without functions.
   */
  config: string | { [member: string]: JsonValue };
  /** Further files beside the config, by relative path. */
  files?: Record<string, string>;
  /** Environment of the server, in addition to the fixed secrets; undefined unsets a variable. */
  env?: Record<string, string | undefined>;
  /** Arguments after `start`. */
  args?: readonly string[];
  /** Limit of open file descriptors, where the system has `ulimit`. */
  descriptorLimit?: number;
  /** Certificate authority of `server.tls`, in PEM. */
  ca?: string;
  /** Command to run; `start` by default. */
  command?: "start" | "dev";
  /** Program that starts the server, with its arguments. */
  prefix?: readonly string[];
  /** The server's command line; by default that of the program under test. */
  program?: readonly string[];
  /** Data directory; by default a new one beside the config. */
  data?: string;
}

/** Server in a separate process, accessed only over its public API. By default it sends no credentials. */
export interface TestPlatform extends HttpClient {
  /** Address `http://127.0.0.1:PORT`, without a trailing slash. */
  readonly url: string;
  /** WebSocket address `ws://127.0.0.1:PORT`. */
  readonly wsUrl: string;
  readonly serviceKey: string;
  readonly dataDirectory: string;
  readonly configFile: string;
  readonly process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  /** Client with the root service key. */
  readonly service: HttpClient;
  /** Returns a client with this access token. */
  as(token: string): HttpClient;
  /** Returns a client with this service key. */
  withKey(key: string): HttpClient;
  /** Returns the output since the last start (the last 256 KiB). */
  stdout(): string;
  stderr(): string;
  /** Stops the server with SIGTERM (if it still runs) and starts it on the same data directory, optionally with a new config. */
  restart(options?: { config?: TestPlatformOptions["config"] }): Promise<void>;
  /** Sends a signal and waits for the exit; the directories stay. Returns the exit code. */
  kill(signal?: NodeJS.Signals): Promise<number>;
  /** Stops the server with SIGTERM and removes its directories. Returns the exit code. */
  stop(): Promise<number>;
}

/** Returns the command line of the program under test: PLATFORM_EXECUTABLE, else the sources. */
export function platformCommand(): string[] {
  const executable = process.env["PLATFORM_EXECUTABLE"];
  return executable === undefined || executable === ""
    ? [process.execPath, "--no-env-file", MAIN]
    : [resolve(executable)];
}

export function testEnvironment(env: TestPlatformOptions["env"] = {}): Record<string, string | undefined> {
  return {
    ...process.env,
    NODE_ENV: "production",
    PLATFORM_SERVICE_KEY: SERVICE_KEY,
    PLATFORM_JWT_SECRET: JWT_SECRET,
    ...env,
  };
}

export function configSource(config: TestPlatformOptions["config"]): string {
  const text = typeof config === "string" ? config.trim() : JSON.stringify(config);
  if (!text.startsWith("{")) return text;
  return `import { defineConfig, Refusal } from "platform";\n\nexport default defineConfig(${text});\n`;
}

/** Writes a config beside the test's, which adds a certificate to it. */
function withTls(directory: string): string {
  const file = join(directory, "tls.config.ts");
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => JSON.stringify(join(TLS_DIRECTORY, name)));
  writeFileSync(
    file,
    `import config from "./platform.config.ts";
export default { ...config, server: { ...config.server, tls: { cert: ${cert}, key: ${key} } } };\n`,
  );
  return file;
}

/** Writes a config beside the test's, which adds workers to it, and returns its path. */
function withWorkers(directory: string): string {
  const file = join(directory, "workers.config.ts");
  writeFileSync(
    file,
    `import config from "./platform.config.ts";
const isAsItIs = config?.server?.workers !== undefined || config?.server?.tls !== undefined;
export default isAsItIs ? config : { ...config, server: { ...config.server, workers: ${WORKERS} } };\n`,
  );
  return file;
}

/** Collects the output of a process, keeping its end. */
function collect(stream: ReadableStream<Uint8Array>, onText: (text: string) => void = () => {}): () => string {
  let text = "";
  const read = async () => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text = (text + decoder.decode(chunk, { stream: true })).slice(-OUTPUT_KEPT_CHARACTERS);
      onText(text);
    }
  };
  void read();
  return () => text;
}

interface Running {
  url: string;
  process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  stdout: () => string;
  stderr: () => string;
}

async function spawn(
  command: readonly string[],
  env: Record<string, string | undefined>,
  cwd: string,
): Promise<Running> {
  const child = Bun.spawn([...command], { env, cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  ownChild(child);
  const { promise, resolve: ready, reject } = Promise.withResolvers<string>();
  const stdout = collect(child.stdout, (text) => {
    const url = READY.exec(text)?.[1];
    if (url !== undefined) ready(url.replace(/\/$/, ""));
  });
  const stderr = collect(child.stderr);
  const fail = (why: string) => reject(new Error(`${why}\n--- stdout\n${stdout()}\n--- stderr\n${stderr()}`));
  const timer = setTimeout(() => fail(`platform did not start within ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
  void child.exited.then(async (code) => {
    await Bun.sleep(20); // the pipes may still hold the reason
    fail(`platform ended with ${code} before it was ready`);
  });
  try {
    return { url: await promise, process: child, stdout, stderr };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function end(child: Bun.Subprocess, signal: NodeJS.Signals): Promise<number> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  const code = await child.exited;
  clearTimeout(timer);
  return code;
}

/** Returns the config with which the server starts: the test's, or one beside it that adds to it. */
function usedConfig(directory: string, { hasStore, isCluster }: { hasStore: boolean; isCluster: boolean }): string {
  if (isCluster) return withCluster(directory);
  if (hasStore) return withContinuous(directory);
  if (TLS_DIRECTORY !== "") return withTls(directory);
  return WORKERS > 0 ? withWorkers(directory) : join(directory, "platform.config.ts");
}

/** Starts a platform with this config in a new directory. Rejects with its output if it does not start. */
export async function testPlatform(options: TestPlatformOptions): Promise<TestPlatform> {
  const directory = temporaryDirectory();
  const configFile = join(directory, "platform.config.ts");
  const dataDirectory = options.data ?? join(directory, "data");
  writeFileSync(configFile, configSource(options.config));
  for (const [path, text] of Object.entries(options.files ?? {})) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  const { descriptorLimit } = options;
  const hasStore = IS_CONTINUOUS && options.command !== "dev" && options.args?.includes("--drill") !== true;
  const isCluster = IS_CLUSTER && options.command !== "dev" && options.program === undefined;
  const commandOf = (data: string): string[] => [
    ...(descriptorLimit === undefined ? [] : ["sh", "-c", `ulimit -n ${descriptorLimit}; exec "$@"`, "sh"]),
    ...[...(options.prefix ?? []), ...(options.program ?? platformCommand()), options.command ?? "start"],
    ...["--config", usedConfig(directory, { hasStore, isCluster }), "--data", data, "--port", "0"],
    ...(TLS_DIRECTORY === "" ? [] : ["--host", "127.0.0.1"]),
    ...(options.args ?? []),
  ];
  const environment = testEnvironment(options.env);
  const nodes = isCluster ? await clusterOfTwo(directory) : null;
  /** The owner, where the server under test is its follower. */
  let owner: Running | null = null;
  const start = async (): Promise<Running> => {
    if (nodes === null) return spawn(commandOf(dataDirectory), environment, directory);
    // The owner has the data directory that tests look at: mails and jobs are its work.
    owner = await spawn(commandOf(dataDirectory), { ...environment, ...nodes.owner }, directory);
    return spawn(commandOf(`${dataDirectory}-of-follower`), { ...environment, ...nodes.follower }, directory);
  };
  const stop = async (): Promise<number> => {
    const code = await end(running.process, "SIGTERM");
    if (owner !== null) await end(owner.process, "SIGTERM");
    return code;
  };
  let running = await start();

  const baseUrl = () => running.url;
  const { ca = null } = options;
  const withKey = (key: string) => createHttpClient(baseUrl, { "x-platform-service-key": key }, ca);
  return {
    ...createHttpClient(baseUrl, {}, ca),
    get url() {
      return running.url;
    },
    get wsUrl() {
      return running.url.replace(/^http/, "ws");
    },
    get process() {
      return running.process;
    },
    serviceKey: SERVICE_KEY,
    dataDirectory,
    configFile,
    service: withKey(SERVICE_KEY),
    as: (token) => createHttpClient(baseUrl, { authorization: `Bearer ${token}` }, ca),
    withKey,
    stdout: () => running.stdout() + (owner?.stdout() ?? ""),
    stderr: () => running.stderr() + (owner?.stderr() ?? ""),
    async restart(next = {}) {
      await stop();
      if (next.config !== undefined) writeFileSync(configFile, configSource(next.config));
      running = await start();
    },
    kill: (signal = "SIGKILL") => end(running.process, signal),
    async stop() {
      const isRunning = running.process.exitCode === null && running.process.signalCode === null;
      const code = await stop();
      if (hasStore && isRunning && code === 0) {
        await requireEqualRestore(platformCommand(), { directory, dataDirectory });
      }
      removeDirectory(directory);
      return code;
    },
  };
}
