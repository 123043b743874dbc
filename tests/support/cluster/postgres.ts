import { chmodSync, chownSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { PostgresConnection } from "../../../src/server/cluster/postgres/connection.ts";
import { ownChild, temporaryDirectory } from "../children.ts";
import { postgresPrograms, UNPRIVILEGED } from "../postgres.ts";
import type { Pair } from "../tls/certificates.ts";
import { until } from "../until.ts";

// Real PostgreSQL servers for the log of a cluster: a primary, and a standby that it waits for.

/** PostgreSQL refuses to run as root. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const asAccount = (command: readonly string[]): string[] => [...(isRoot ? UNPRIVILEGED : []), ...command];

function freePort(): Promise<number> {
  const { promise, resolve: found } = Promise.withResolvers<number>();
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address();
    server.close(() => found(typeof address === "object" && address !== null ? address.port : 0));
  });
  return promise;
}

export interface TestPostgresOptions {
  /** Password of the account `postgres`; it is asked for with SCRAM. */
  password?: string;
  certificate?: Pair;
  /** Settings of the server, beside those that tests have. */
  settings?: Readonly<Record<string, string>>;
}

/** One PostgreSQL server and its data, which can be killed, started again, and given a standby. */
export class TestPostgres {
  readonly url: string;
  readonly port: number;
  readonly data: string;
  readonly #bin: string;
  readonly #settings: Record<string, string> = {};
  #process: Bun.Subprocess | null = null;

  private constructor(bin: string, data: string, port: number, password: string | undefined) {
    this.#bin = bin;
    this.data = data;
    this.port = port;
    const account = password === undefined ? "postgres" : `postgres:${encodeURIComponent(password)}`;
    this.url = `postgres://${account}@127.0.0.1:${port}/postgres`;
  }

  static async start({ password, certificate, settings = {} }: TestPostgresOptions = {}): Promise<TestPostgres> {
    const directory = temporaryDirectory();
    chmodSync(directory, 0o755);
    const bin = join(postgresPrograms(), "native/bin");
    const home = join(directory, "server");
    const data = join(home, "data");
    Bun.spawnSync(["mkdir", "-p", home]);
    if (isRoot) chownSync(home, NOBODY, NOBODY);
    const proof =
      password === undefined ? ["-A", "trust"] : ["-A", "scram-sha-256", `--pwfile=${join(home, "password")}`];
    if (password !== undefined) writeFileSync(join(home, "password"), password);
    const initialised = Bun.spawnSync(
      asAccount([join(bin, "initdb"), "-D", data, "-U", "postgres", "--no-sync", "--no-instructions", ...proof]),
      { env: { PATH: process.env["PATH"] ?? "", LC_ALL: "C", HOME: home } },
    );
    if (initialised.exitCode !== 0) throw new Error(`initdb: ${initialised.stderr.toString()}`);
    const server = new TestPostgres(bin, data, await freePort(), password);
    Object.assign(server.#settings, settings);
    if (certificate !== undefined) server.#writeCertificate(certificate);
    await server.run();
    return server;
  }

  /** Starts it, and waits until it takes connections. */
  async run(): Promise<void> {
    const settings = {
      port: String(this.port),
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      shared_buffers: "32MB",
      wal_level: "replica",
      max_connections: "60",
      // A power cut is not what these tests are about.
      fsync: "off",
      ...this.#settings,
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const env = { PATH: process.env["PATH"] ?? "", LC_ALL: "C", HOME: dirname(this.data) };
    const child = Bun.spawn(asAccount([join(this.#bin, "postgres"), "-D", this.data, ...options]), {
      env,
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    ownChild(child);
    this.#process = child;
    await until("PostgreSQL takes connections", async () => {
      const connection = await this.connect().catch(() => null);
      connection?.close();
      return connection !== null;
    });
  }

  #writeCertificate({ cert, key }: Pair): void {
    this.#settings["ssl"] = "on";
    for (const [name, text] of [
      ["server.crt", cert],
      ["server.key", key],
    ] as const) {
      const path = join(this.data, name);
      writeFileSync(path, text, { mode: 0o600 });
      if (isRoot) chownSync(path, NOBODY, NOBODY);
    }
  }

  connect(name = "test"): Promise<PostgresConnection> {
    return PostgresConnection.open({
      url: this.url,
      applicationName: name,
      nonce: () => crypto.randomUUID(),
      closed() {},
    });
  }

  /** Runs one statement on a connection of its own. Returns its rows as texts. */
  async sql(text: string, parameters: readonly (string | number)[] = []): Promise<(string | null)[][]> {
    const connection = await this.connect("operator");
    try {
      const { rows } = await connection.run(text, parameters);
      return rows.map((row) => row.map((value) => (value === null ? null : new TextDecoder().decode(value))));
    } finally {
      connection.close();
    }
  }

  /** Sets the names of standbys, and waits until sessions that look have read them. */
  async setStandbyNames(names: string): Promise<void> {
    await this.sql(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await this.sql("SELECT pg_reload_conf()");
    await until("the names of standbys are set", async () => {
      const rows = await this.sql("SHOW synchronous_standby_names");
      return rows[0]?.[0] === names;
    });
  }

  /** Makes a standby of a copy of the data, which needs this server to stop for a moment. */
  async standby(name: string): Promise<TestPostgres> {
    await this.stop();
    const data = `${this.data}-${name}`;
    Bun.spawnSync(["cp", "-a", this.data, data]);
    const other = new TestPostgres(this.#bin, data, await freePort(), undefined);
    const source = `host=127.0.0.1 port=${this.port} user=postgres application_name=${name}`;
    Bun.spawnSync(
      asAccount([
        "sh",
        "-c",
        `echo "primary_conninfo='${source}'" >> "$0/postgresql.auto.conf"; touch "$0/standby.signal"`,
        data,
      ]),
    );
    await this.run();
    await other.run();
    return other;
  }

  async promote(): Promise<void> {
    await this.sql("SELECT pg_promote()");
  }

  /** Ends it without a word, as a power cut of its machine does. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    child?.kill("SIGQUIT");
    await child?.exited;
  }

  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    child?.kill("SIGINT");
    await child?.exited;
  }
}
