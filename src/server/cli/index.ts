import { Command, CommanderError, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { VERSION } from "../../kernel/version.ts";
import { BACKUP_JOB_COMMAND } from "../areas/backup/job/job-process.ts";
import { CERTIFICATE_JOB_COMMAND } from "../areas/tls/job/command.ts";
import { envFileOf, loadEnvFile } from "../config/loading/env-file.ts";
import { ownProduct } from "../config/loading/product.ts";
import { ConfigError } from "../config/problems.ts";
import { SecretsError } from "../config/secrets/secrets.ts";
import { WORKER_COMMAND } from "../platform/workers/command.ts";
import { CommandError, UsageError } from "./errors.ts";
import { CONFIG_DEFAULT } from "./options.ts";
import { errorOutput, OutputClosed, printAnswer, printNote } from "./output.ts";
import { PREVIEW_JOB_COMMAND, REHEARSAL_JOB_COMMAND } from "./rehearsal/protocol.ts";

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

type LoadCommand = () => Promise<CommandUnknownOpts>;

/** The commands, in the order of the guide. Each is loaded when it runs: a start of the server does not evaluate the CSV parser. */
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
  migrate: async () => (await import("./migrate/migrate.ts")).migrateCommand,
  health: async () => (await import("./health.ts")).healthCommand,
  certificate: async () => (await import("./certificate.ts")).certificateCommand,
  backup: async () => (await import("./backup/backup.ts")).backupCommand,
  restore: async () => (await import("./backup/restore.ts")).restoreCommand,
  history: async () => (await import("./backup/restore.ts")).historyCommand,
  "verify-backup": async () => (await import("./backup/verify-backup.ts")).verifyBackupCommand,
  doctor: async () => (await import("./doctor/doctor.ts")).doctorCommand,
  cluster: async () => (await import("./cluster.ts")).clusterCommand,
  audit: async () => (await import("./audit.ts")).auditCommand,
  api: async () => (await import("./api.ts")).apiCommand,
  mcp: async () => (await import("./mcp.ts")).mcpCommand,
};

/** The internal commands, which the server runs in child processes; the help omits them. */
const JOBS: Readonly<Record<string, LoadCommand>> = {
  [REHEARSAL_JOB_COMMAND]: async () => (await import("./rehearsal/job.ts")).rehearsalJobCommand,
  [PREVIEW_JOB_COMMAND]: async () => (await import("./rehearsal/preview-command.ts")).previewJobCommand,
  [WORKER_COMMAND]: async () => (await import("./serve/worker.ts")).workerCommand,
  [CERTIFICATE_JOB_COMMAND]: async () => (await import("./certificate.ts")).certificateJobCommand,
  [BACKUP_JOB_COMMAND]: async () => (await import("./backup/verify-backup.ts")).backupJobCommand,
};

/** The commands for developing a config: an executable with an embedded config omits them. */
const ABOUT_CONFIG_FILES = new Set(["init", "dev", "docs", "build", "migrate"]);

const product = ownProduct();
const commands =
  product === null
    ? COMMANDS
    : Object.fromEntries(Object.entries(COMMANDS).filter(([name]) => !ABOUT_CONFIG_FILES.has(name)));

const LOADABLE = { ...commands, ...JOBS };
const programName = product?.name ?? "platform";

/** Runs one command. Returns the exit code: 0 for success, 1 for failure, 2 for wrong usage. */
export async function runCommandLine(rawArgs: readonly string[]): Promise<number> {
  try {
    return await dispatch(rawArgs);
  } catch (cause) {
    if (cause instanceof OutputClosed) return EXIT_FAILED;
    const isExpected = [UsageError, CommandError, ConfigError, SecretsError].some((type) => cause instanceof type);
    const message = cause instanceof Error ? cause.message : String(cause);
    await printNote(`${programName}: ${isExpected ? Bun.stripANSI(message) : message}`);
    if (!(cause instanceof UsageError)) return EXIT_FAILED;
    await printNote(helpHint(rawArgs[0]));
    return EXIT_USAGE;
  } finally {
    await errorOutput.flush();
  }
}

const helpHint = (command: string | undefined): string =>
  `Try "${[programName, ...(command === undefined ? [] : [command])].join(" ")} --help".`;

async function dispatch(rawArgs: readonly string[]): Promise<number> {
  const [name] = rawArgs;
  if (name === "--licenses") {
    await printAnswer((await import("./notices/third-party.txt", { with: { type: "text" } })).default.trimEnd());
    return 0;
  }
  const written = { answer: "", note: "" };
  const program = new Command(programName)
    .description(product === null ? "A whole backend in one executable" : `Built with platform ${VERSION}`)
    .version(
      product === null ? VERSION : `${product.name} ${product.version} (platform ${VERSION})`,
      "-v, --version",
      "Prints the version",
    )
    .option("--licenses", "Prints the licences of everything that the executable contains")
    .helpOption("-h, --help", "Prints the help of a command")
    .helpCommand(false)
    // Options of commands follow the command's name.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => (written.answer += text),
      writeErr: (text) => (written.note += text),
      outputError: (text, write) => write(text.replace(/^error/, programName)),
    })
    .showHelpAfterError(helpHint(undefined));
  const add = (command: CommandUnknownOpts): void => {
    program.addCommand(command.copyInheritedSettings(program).showHelpAfterError(helpHint(command.name())));
  };
  try {
    const load = name !== undefined && Object.hasOwn(LOADABLE, name) ? LOADABLE[name] : undefined;
    // The help, and suggestions for an unknown name, need all commands.
    if (load === undefined) for (const loadOne of Object.values(commands)) add(await loadOne());
    else await prepare(await load(), rawArgs.slice(1));
    await program.parseAsync(rawArgs, { from: "user" });
  } catch (cause) {
    if (!(cause instanceof CommanderError)) throw cause;
    if (written.answer !== "") await printAnswer(written.answer.trimEnd());
    if (written.note !== "") await printNote(written.note.trimEnd());
    return cause.exitCode === 0 ? 0 : EXIT_USAGE;
  }
  return Number(process.exitCode ?? 0);

  async function prepare(command: CommandUnknownOpts, args: readonly string[]): Promise<void> {
    add(command);
    // The executable starts with a JIT policy for code that runs once (scripts/build.ts); a server resets it after its start.
    if (name !== "start") Bun.unsafe.setJITPolicy(1);
    // `dev` leaves the variables file to the server that it starts, which reloads it after a change.
    if (name !== "dev") {
      command.parseOptions([...args]);
      loadEnvFile(envFileOf(configFileOf(command)), process.env);
    }
    // An empty variable counts as unset.
    for (const { envVar } of command.options) {
      if (envVar !== undefined && process.env[envVar] === "") delete process.env[envVar];
    }
  }
}

/** Returns the path of the config as far as a command knows it: the variables file beside it applies to all commands. */
const configFileOf = (command: CommandUnknownOpts): string =>
  command.getOptionValueSource("config") === "cli"
    ? String(command.getOptionValue("config"))
    : process.env["PLATFORM_CONFIG"] || CONFIG_DEFAULT;
