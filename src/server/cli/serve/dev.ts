import { existsSync, type FSWatcher, statSync, watch } from "node:fs";
import { dirname } from "node:path";
import { Command } from "@commander-js/extra-typings";
import { systemIds } from "../../../kernel/ids.ts";
import { ownCommand } from "../../../kernel/process/own-command.ts";
import { envFileOf } from "../../config/loading/env-file.ts";
import { importedFiles } from "../../config/loading/imported-files.ts";
import { DEV_STOP_MAX_MS, SETTLE_MS } from "../limits.ts";
import { configOption, DATA_DEFAULT, dataOption } from "../options.ts";
import { printNote } from "../output.ts";
import { hostOption, logOption, portOption } from "./serve-options.ts";
import { MCP_KEY_VARIABLE, STOP_MESSAGE, stopSignal } from "./signals.ts";

const MCP_KEY_BYTES = 24;

export const devCommand = new Command("dev")
  .description("Like start, and restarts when the config, a file that it imports or .env changes")
  .addOption(configOption)
  .addOption(dataOption)
  .addOption(hostOption)
  .addOption(portOption)
  .addOption(logOption)
  .action(async ({ config, data, host, port, log }) => {
    // Options that are absent here may be in the variables file, which the server reads.
    const options = { config, data: data === DATA_DEFAULT ? undefined : data, host, port, log };
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    const command = [...ownCommand(), "start", ...given.map(([name, value]) => `--${name}=${value}`)];
    const mcpKey = `mcp_${systemIds.secret(MCP_KEY_BYTES)}`;
    const stopped = stopSignal();
    let isStopping = false;
    void stopped.then(() => {
      isStopping = true;
    });
    while (!isStopping) {
      const watched = watchFiles([...importedFiles(config), envFileOf(config)]);
      const server = startServer(command, mcpKey);
      const reason = await Promise.race([
        stopped.then(() => "stopped" as const),
        watched.changed.then(() => "changed" as const),
        server.exited.then(() => "ended" as const),
      ]);
      if (reason === "ended" && !isStopping) {
        await printNote("platform: the server has ended; it starts again when the config changes");
        await Promise.race([stopped, watched.changed]);
      }
      watched.close();
      await server.stop();
      if (!isStopping) await printNote("platform: the config changed, starting again");
    }
  });

interface Server {
  exited: Promise<unknown>;
  /** Stops the server; resolves when it has ended. */
  stop(): Promise<void>;
}

function startServer(command: string[], mcpKey: string): Server {
  // The server stops on a message of this channel, or when the channel closes because this process has ended.
  const child = Bun.spawn(command, {
    stdio: ["ignore", "inherit", "inherit"],
    ipc: () => {},
    env: { ...process.env, [MCP_KEY_VARIABLE]: mcpKey },
  });
  return {
    exited: child.exited,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.send(STOP_MESSAGE);
      const timer = setTimeout(() => child.kill("SIGKILL"), DEV_STOP_MAX_MS);
      await child.exited;
      clearTimeout(timer);
    },
  };
}

/** Resolves `changed` when one of the files has changed. */
function watchFiles(files: readonly string[]): { changed: Promise<void>; close(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const before = new Map(files.map((file) => [file, fingerprint(file)]));
  let timer: ReturnType<typeof setTimeout> | undefined;
  const compare = (): void => {
    if (files.some((file) => fingerprint(file) !== before.get(file))) resolve();
  };
  const look = (): void => {
    clearTimeout(timer);
    timer = setTimeout(compare, SETTLE_MS);
  };
  // Watches directories: editors replace a file by a new one of the same name.
  const directories = new Set(files.map((file) => dirname(file)));
  const watchers: FSWatcher[] = [...directories]
    .filter((directory) => existsSync(directory))
    .map((directory) => watch(directory, look));
  return {
    changed: promise,
    close() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}

/** Returns a fingerprint that changes with every write; empty for a missing file. */
function fingerprint(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? "" : `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
}
