import { parseArgs } from "node:util";
import { type ArgsDef, type CommandDef, defineCommand, renderUsage, runCommand } from "citty";
import { closestName } from "../../kernel/closest-name.ts";
import { VERSION } from "../../kernel/version.ts";
import { BACKUP_JOB_COMMAND } from "../areas/backup/schedule/job-process.ts";
import { CERTIFICATE_JOB_COMMAND } from "../areas/tls/job/command.ts";
import { envFileOf, loadEnvFile } from "../config/loading/env-file.ts";
import { ownProduct } from "../config/loading/product.ts";
import { ConfigError } from "../config/problems.ts";
import { SecretsError } from "../config/secrets/secrets.ts";
import { CommandError, UsageError } from "./errors.ts";
import { CONFIG_DEFAULT, environmentArguments } from "./options.ts";
import { errorOutput, OutputClosed, printAnswer, printNote } from "./output.ts";
import { REHEARSAL_JOB_COMMAND } from "./rehearsal/protocol.ts";

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

type LoadCommand = () => Promise<CommandDef>;

/** In the order of the guide. Each is loaded when it runs: a start of the server does not evaluate the CSV parser. */
const COMMANDS: Readonly<Record<string, LoadCommand>> = {
  start: async () => (await import("./serve/start.ts")).startCommand,
  dev: async () => (await import("./serve/dev.ts")).devCommand,
  init: async () => (await import("./starter/init.ts")).initCommand,
  docs: async () => (await import("./starter/docs.ts")).docsCommand,
  check: async () => (await import("./check.ts")).checkCommand,
  client: async () => (await import("./client.ts")).clientCommand,
  build: async () => (await import("./product/build.ts")).buildCommand,
  keys: async () => (await import("./keys.ts")).keysCommand,
  "admin-link": async () => (await import("./admin-link.ts")).adminLinkCommand,
  import: async () => (await import("./transfer/import.ts")).importCommand,
  export: async () => (await import("./transfer/export.ts")).exportCommand,
  health: async () => (await import("./running/health.ts")).healthCommand,
  certificate: async () => (await import("./certificate/certificate.ts")).certificateCommand,
  backup: async () => (await import("./backup/backup.ts")).backupCommand,
  restore: async () => (await import("./backup/restore.ts")).restoreCommand,
  "verify-backup": async () => (await import("./backup/verify-backup.ts")).verifyBackupCommand,
  doctor: async () => (await import("./doctor/doctor.ts")).doctorCommand,
  audit: async () => (await import("./audit.ts")).auditCommand,
  [REHEARSAL_JOB_COMMAND]: async () => (await import("./rehearsal/job.ts")).rehearsalJobCommand,
  [CERTIFICATE_JOB_COMMAND]: async () => (await import("./certificate/job.ts")).certificateJobCommand,
  [BACKUP_JOB_COMMAND]: async () => (await import("./backup/scheduled-backup.ts")).backupJobCommand,
};

/** Those that are about making a config: an executable that contains its config has no use for them. */
const ABOUT_CONFIG_FILES = new Set(["init", "dev", "docs", "build"]);

const product = ownProduct();
const commands =
  product === null
    ? COMMANDS
    : Object.fromEntries(Object.entries(COMMANDS).filter(([name]) => !ABOUT_CONFIG_FILES.has(name)));

const mainCommand = defineCommand({
  meta:
    product === null
      ? { name: "platform", version: VERSION, description: "A whole backend in one executable" }
      : { name: product.name, version: product.version, description: `Built with platform ${VERSION}` },
  subCommands: commands,
});

/** Runs one command and gives the exit code: 0 for success, 1 for failure, 2 for wrong usage. */
export async function runCommandLine(rawArgs: readonly string[]): Promise<number> {
  try {
    return await dispatch(rawArgs);
  } catch (cause) {
    // The output is closed.
    if (cause instanceof OutputClosed) return EXIT_FAILED;
    const isUsage = cause instanceof UsageError || isCittyError(cause);
    const isExpected =
      isUsage || cause instanceof CommandError || cause instanceof ConfigError || cause instanceof SecretsError;
    await printNote(
      `${product?.name ?? "platform"}: ${isExpected || !(cause instanceof Error) ? messageOf(cause) : cause.message}`,
    );
    if (isUsage) await printNote(`Try "${[product?.name ?? "platform", ...commandOf(rawArgs)].join(" ")} --help".`);
    return isUsage ? EXIT_USAGE : EXIT_FAILED;
  } finally {
    await errorOutput.flush();
  }
}

async function dispatch([name, ...rest]: readonly string[]): Promise<number> {
  if (name === undefined) {
    await printNote(plain(await renderUsage(mainCommand), process.stderr.isTTY));
    return EXIT_USAGE;
  }
  if (name === "--help" || name === "-h") return printUsage(mainCommand);
  if (name === "--version" || name === "-v") {
    await printAnswer(product === null ? VERSION : `${product.name} ${product.version} (platform ${VERSION})`);
    return 0;
  }
  if (name === "--licenses") {
    await printAnswer((await import("./notices/third-party.txt", { with: { type: "text" } })).default.trimEnd());
    return 0;
  }
  if (name.startsWith("-")) throw new UsageError(`unknown option ${name}`);
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined) throw new UsageError(`unknown command "${name}"${closestName(name, Object.keys(commands))}`);
  // The executable begins with a policy for what runs once (scripts/build.ts), which a server ends when it has started.
  if (name !== "start") Bun.unsafe.setJITPolicy(1);
  const command = product === null ? await load() : withoutConfigOption(await load());
  if (asksForHelp(rest)) return printUsage(command);
  // The commands declare their arguments as plain objects; citty also accepts promises and functions.
  const declared = (command.args ?? {}) as ArgsDef;
  const given = checkArguments(rest, declared);
  // `dev` leaves it to the server that it starts, which reads the file again after a change.
  if (name !== "dev") loadEnvFile(envFileOf(configFileOf(given)), process.env);
  const { result } = await runCommand(command, {
    rawArgs: [...environmentArguments(declared, given, process.env), ...rest],
  });
  return typeof result === "number" ? result : 0;
}

/** Where the config is, as far as a command knows: the variables of a file beside it are for all commands. */
const configFileOf = ({ config }: Readonly<Record<string, unknown>>): string =>
  typeof config === "string" ? config : process.env["PLATFORM_CONFIG"] || CONFIG_DEFAULT;

/** The command whose help explains a mistake; empty if it is none. */
const commandOf = ([name = ""]: readonly string[]): string[] => (Object.hasOwn(commands, name) ? [name] : []);

function withoutConfigOption(command: CommandDef): CommandDef {
  // As in checkArguments.
  const { config: _, ...args } = (command.args ?? {}) as ArgsDef;
  return { ...command, args };
}

async function printUsage(command: CommandDef): Promise<number> {
  await printAnswer(
    plain(await renderUsage(command, command === mainCommand ? undefined : mainCommand), process.stdout.isTTY),
  );
  return 0;
}

const plain = (text: string, isTerminal: boolean): string => (isTerminal ? text : Bun.stripANSI(text));

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  const own = end === -1 ? args : args.slice(0, end);
  return own.includes("--help") || own.includes("-h");
}

/**
 * The values of the given options. citty ignores unknown options; a mistyped one must not start a server on the default
 * directory.
 */
function checkArguments(args: readonly string[], declared: ArgsDef): Record<string, unknown> {
  const entries = Object.entries(declared);
  const options = entries.filter(([, argument]) => argument.type !== "positional");
  const positionals = entries.filter(([, argument]) => argument.type === "positional");
  const types = options.map(([name, argument]) => [name, { type: argument.type === "boolean" ? "boolean" : "string" }]);
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({
      args: [...args],
      options: Object.fromEntries(types),
      allowPositionals: true,
      strict: true,
    });
  } catch (cause) {
    const known = options.map(([name]) => `--${name}`);
    throw new UsageError(describeMistake(messageOf(cause), known));
  }
  // A script passes an empty value where its variable is not set.
  const empty = Object.entries(parsed.values).find(([, value]) => value === "");
  if (empty !== undefined) throw new UsageError(`--${empty[0]} must not be empty`);
  const surplus = parsed.positionals[positionals.length];
  if (surplus !== undefined) throw new UsageError(`unexpected argument "${surplus}"`);
  const missing = positionals.slice(parsed.positionals.length).find(([, argument]) => argument.required !== false);
  if (missing !== undefined) throw new UsageError(`${missing[0].toUpperCase()} is missing: ${missing[1].description}`);
  return parsed.values;
}

/** Node's message in this program's words, without its advice on arguments that begin with a hyphen. */
function describeMistake(message: string, known: readonly string[]): string {
  const unknown = /^Unknown option '(--?[^']*)'/.exec(message)?.[1];
  if (unknown !== undefined) return `unknown option ${unknown}${closestName(unknown, known)}`;
  const option = /^Option '(--[^' ]+)/.exec(message)?.[1];
  if (option === undefined) return message;
  return `${option} ${message.includes("does not take") ? "takes no value" : "needs a value"}`;
}

/** citty does not export its error class. */
const isCittyError = (cause: unknown): boolean => cause instanceof Error && cause.name === "CLIError";

function messageOf(cause: unknown): string {
  return cause instanceof Error ? Bun.stripANSI(cause.message) : String(cause);
}
