import { existsSync, type FSWatcher, statSync, watch } from "node:fs";
import { dirname } from "node:path";
import { importedFiles } from "../config/loading/imported-files.ts";
import { STOP_MAX_MS } from "../kernel/stop.ts";
import { declareCommand } from "./command.ts";
import { parsePort } from "./options.ts";
import { printNote } from "./output.ts";
import { ownCommand } from "./own-command.ts";
import { serveOptions } from "./serve-options.ts";
import { STOP_MESSAGE, stopSignal } from "./signals.ts";

/** Editors write a file in several steps; a restart waits until they are done. */
const SETTLE_MS = 100;
/** After the time in which a server ends its stop by itself. */
const KILL_MARGIN_MS = 1_000;

export const devCommand = declareCommand({
  meta: { name: "dev", description: "As start, and restarts when the config or a file it imports changes" },
  args: serveOptions,
  async run({ args }) {
    parsePort(args.port);
    const { config, data, host, port } = args;
    const command = [...ownCommand(), "start", "--config", config, "--data", data, "--host", host, "--port", port];
    const stopped = stopSignal();
    let isStopping = false;
    void stopped.then(() => {
      isStopping = true;
    });
    while (!isStopping) {
      const watched = watchFiles(importedFiles(config));
      const server = startServer(command);
      const reason = await Promise.race([
        stopped.then(() => "stopped" as const),
        watched.changed.then(() => "changed" as const),
        server.exited.then(() => "ended" as const),
      ]);
      if (reason === "ended" && !isStopping) {
        await printNote("platform: the server ended; it starts again when the config changes");
        await Promise.race([stopped, watched.changed]);
      }
      watched.close();
      await server.stop();
      if (!isStopping) await printNote("platform: the config changed, starting again");
    }
    return 0;
  },
});

interface Server {
  exited: Promise<unknown>;
  /** Asks it to stop and waits until it has. */
  stop(): Promise<void>;
}

function startServer(command: string[]): Server {
  // The channel tells the server to stop, and by its end that nobody is left who could.
  const child = Bun.spawn(command, { stdio: ["ignore", "inherit", "inherit"], ipc: () => {} });
  return {
    exited: child.exited,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.send(STOP_MESSAGE);
      // A config that never gives its thread back hears nothing.
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MAX_MS + KILL_MARGIN_MS);
      await child.exited;
      clearTimeout(timer);
    },
  };
}

/** Resolves `changed` once, when one of the files has become another. */
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
  // Directories, because editors replace a file by another one of its name.
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

/** Changes with every write; empty for a file that is not there. */
function fingerprint(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? "" : `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
}
