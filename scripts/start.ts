import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { FILMS_FILE } from "../example/films.ts";
import { PAGES_BUILD } from "../example/web/build.ts";
import { runCommandLine } from "../src/server/cli/index.ts";

// `npm start`: the film club of platform.config.ts on http://127.0.0.1:8787, with its films imported at the first start.
// Arguments are passed to `platform start` (`npm start -- --port 9000`). With --config or --data there is no import.

const SHELL_CHECK_MS = 500;
const root = resolve(import.meta.dir, "..");
const data = join(root, "data");
const own = ["--config", join(root, "platform.config.ts"), "--data", data];
const asked = process.argv.slice(2);
const isOwn = (argument: string) => !/^--(config|data)(=|$)/.test(argument);

/** Builds the pages of the film club, for `site` of its config. */
async function buildPages(): Promise<void> {
  const { success, logs } = await Bun.build(PAGES_BUILD);
  if (!success) throw new AggregateError(logs, "The pages of the film club cannot be built");
}

/** A marker that exists while films are imported, so that an interrupted import is repeated at the next start. */
const importing = join(data, "films.importing");

/** Imports the films, and returns the exit code. */
async function importFilms(): Promise<number> {
  mkdirSync(data, { recursive: true });
  writeFileSync(importing, "");
  const code = await runCommandLine(["import", "shared/films", FILMS_FILE, "--upsert", ...own]);
  if (code !== 0) return code;
  rmSync(importing);
  // The import has generated the key, so the server does not print it.
  if (process.env["PLATFORM_SERVICE_KEY"] === undefined) {
    process.stdout.write("root service key: ");
    await runCommandLine(["keys", "--data", data]);
  }
  return 0;
}

/** Stops this process with its shell: npm ends the shell that started it, and the shell sends no signal. */
function stopWithShell(): void {
  const shell = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, SHELL_CHECK_MS);
  timer.unref();
}

if (process.env["npm_lifecycle_event"] === "start") stopWithShell();
if (asked.every(isOwn)) {
  await buildPages();
  const isFirstStart = !existsSync(join(data, "databases", "shared.db")) || existsSync(importing);
  const code = isFirstStart ? await importFilms() : 0;
  // Runs in this process: a signal then arrives once, from a terminal and from a supervisor.
  process.exit(code === 0 ? await runCommandLine(["start", ...own, ...asked]) : code);
}
process.exit(await runCommandLine(["start", ...asked]));
