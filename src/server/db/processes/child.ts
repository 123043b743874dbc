import { writeFileSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { zstdDecompressSync } from "node:zlib";
import type { FromProcess, ProgramStart } from "./protocol.ts";

/**
 * Loader that a process runs first. The process starts as plain Bun and receives its program: the executable's own code takes twice
 * the time to load, and four times the memory. Messages that arrive while the program is loaded are buffered for it.
 */
const LOADER = `
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
  process.once("message", async ({ source, file, settings }) => {
    const early = [];
    const keep = (message) => early.push(message);
    process.on("message", keep);
    const loaded = { exports: {} };
    if (source === null) loaded.exports = await import(file);
    else (0, eval)(source)(loaded.exports, require, loaded);
    process.off("message", keep);
    loaded.exports.start(settings);
    for (const message of early) process.emit("message", message);
  });`;

/** Programs by name, as scripts/build.ts has bundled them: JSON, compressed, in base64. Only in the executable. */
declare const PLATFORM_PROGRAMS: string;

let programs: Readonly<Record<string, string>> | null = null;

function unpackPrograms(): Readonly<Record<string, string>> {
  // Written by scripts/build.ts.
  return JSON.parse(zstdDecompressSync(Buffer.from(PLATFORM_PROGRAMS, "base64")).toString()) as Record<string, string>;
}

function startOf(program: string, settings: unknown): ProgramStart {
  if (!Bun.isStandaloneExecutable) {
    return { source: null, file: Bun.fileURLToPath(new URL(`../../${program}.ts`, import.meta.url)), settings };
  }
  programs ??= unpackPrograms();
  const source = programs[program];
  if (source === undefined) throw new Error(`the executable has no program ${program}`);
  return { source, file: null, settings };
}

/**
 * Starts a process that runs a program: a module `*-job.ts`, named by its path under `src` without the ending. Errors: the
 * system has no process or descriptor left.
 */
export function startChild(options: {
  program: string;
  settings: unknown;
  priority: "below" | "same";
  onMessage: (message: FromProcess) => void;
}): Bun.Subprocess {
  const { program, settings, priority, onMessage } = options;
  const child = Bun.spawn([process.execPath, "-e", LOADER], {
    // Not the directory of the server, whose bunfig.toml or .env is not for this process.
    cwd: process.platform === "win32" ? (process.env["SystemRoot"] ?? "C:\\") : "/",
    env: childEnvironment(),
    stdio: ["ignore", "ignore", "inherit"],
    serialization: "advanced",
    ipc: (message: FromProcess) => onMessage(message),
  });
  child.unref();
  giveWay(child.pid, priority);
  child.send(startOf(program, settings));
  return child;
}

/**
 * Lowers the process's claim: the server gets the processor first, and where memory runs out, a query is ended and not the server.
 */
function giveWay(pid: number, priority: "below" | "same"): void {
  try {
    if (priority === "below") setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
    if (process.platform === "linux") writeFileSync(`/proc/${pid}/oom_score_adj`, "1000");
  } catch {
    // The process has ended already, or the system does not allow it: the job runs all the same.
  }
}

export function describeExit(child: Bun.Subprocess): string {
  return child.signalCode === null ? `exit code ${child.exitCode}` : `signal ${child.signalCode}`;
}

/** Returns the environment of a process, without the secrets in the server's environment. */
function childEnvironment(): Record<string, string> {
  const environment: Record<string, string> = {
    // Makes a compiled executable behave like plain Bun.
    BUN_BE_BUN: "1",
    // Ends the process with the server, even in the middle of a query that never ends.
    BUN_FEATURE_FLAG_NO_ORPHANS: "1",
  };
  for (const name of ["TMPDIR", "TEMP", "TMP", "SystemRoot"]) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}
