import { existsSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Time after which the compiler is ended: then nothing is known of the types. */
const COMPILER_MAX_MS = 20_000;
/** Faults that are named. */
const FAULTS_MAX = 10;

const FAULT = /^(.+?)\((\d+),\d+\): error (TS\d+): (.*)$/;

/**
 * Asks the TypeScript that lies beside a config for the faults of a text of it in `file`, beside it too. Returns those that the config
 * itself has not; none where there is no TypeScript, or it does not answer in time.
 */
export async function typeFaults({ path, file }: { path: string; file: string }): Promise<string[]> {
  const directory = dirname(path);
  const compiler = compilerBeside(directory);
  if (compiler === null || !path.endsWith(".ts")) return [];
  const project = `${file}.json`;
  try {
    writeFileSync(project, JSON.stringify(projectOf(path, file)), { mode: 0o600, flag: "wx" });
    const child = Bun.spawn([process.execPath, compiler, "--project", project, "--pretty", "false"], {
      cwd: directory,
      env: compilerEnvironment(),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
      timeout: COMPILER_MAX_MS,
      killSignal: "SIGKILL",
    });
    return newFaults(await new Response(child.stdout).text(), { path, file });
  } finally {
    rmSync(project, { force: true });
  }
}

/** Returns the environment of the compiler, without the secrets in the server's. */
function compilerEnvironment(): Record<string, string> {
  // The executable runs a script only when it is told to be Bun.
  const environment: Record<string, string> = { BUN_BE_BUN: "1", BUN_FEATURE_FLAG_NO_ORPHANS: "1" };
  for (const name of ["PATH", "HOME", "TMPDIR", "TEMP", "TMP", "SystemRoot"]) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}

/** Returns the compiler in `node_modules` of the directory, or of one above it; null: there is none. */
function compilerBeside(directory: string): string | null {
  const compiler = join(directory, "node_modules/typescript/bin/tsc");
  if (existsSync(compiler)) return compiler;
  const above = dirname(directory);
  return above === directory ? null : compilerBeside(above);
}

/** Returns the project of the config and of the text, with the options of the config's own project. */
function projectOf(path: string, file: string): object {
  const hasOptions = existsSync(join(dirname(path), "tsconfig.json"));
  return {
    ...(hasOptions ? { extends: "./tsconfig.json" } : {}),
    compilerOptions: { noEmit: true, incremental: false, composite: false, ...(hasOptions ? {} : STRICT) },
    files: [basename(path), basename(file)],
    include: ["*.d.ts"],
  };
}

/** Options of a config without a project: those of `platform init`. */
const STRICT = {
  target: "ESNext",
  module: "Preserve",
  moduleResolution: "bundler",
  lib: ["ESNext", "DOM"],
  types: [],
  allowImportingTsExtensions: true,
  strict: true,
  skipLibCheck: true,
};

/** Returns the faults of the text that the config has not, with their lines. */
function newFaults(output: string, { path, file }: { path: string; file: string }): string[] {
  const [present, edited] = [basename(path), basename(file)];
  const known = new Set<string>();
  const found: { line: string; text: string }[] = [];
  for (const said of output.split("\n")) {
    const [, where = "", line = "", code = "", message = ""] = FAULT.exec(said.trimEnd()) ?? [];
    const text = `${message.replaceAll(edited, present)} (${code})`;
    if (basename(where) === present) known.add(text);
    if (basename(where) === edited) found.push({ line, text });
  }
  return found
    .filter(({ text }) => !known.has(text))
    .slice(0, FAULTS_MAX)
    .map(({ line, text }) => `line ${line}: ${text}`);
}
