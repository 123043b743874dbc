import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { TestPostgres } from "../../../../tests/support/cluster/postgres.ts";
import { createAuthority } from "../../../../tests/support/tls/certificates.ts";
import { until } from "../../../../tests/support/until.ts";
import { PostgresConnection, PostgresError } from "./connection.ts";
import { LogChannel } from "./log-channel.ts";
import { MessageReader, type Parameter } from "./wire.ts";

const PASSWORD = "pä:ss/wörd@1";
let postgres: TestPostgres;
beforeAll(async () => {
  const authority = await createAuthority();
  postgres = await TestPostgres.start({ password: PASSWORD, certificate: await authority.sign() });
});
afterAll(() => postgres.stop());

const open = (url: string, closed = () => {}): Promise<PostgresConnection> =>
  PostgresConnection.open({ url, applicationName: "test", nonce: () => crypto.randomUUID(), closed });

/** Runs one statement, and returns its rows as texts and what was noticed. */
async function ask(connection: PostgresConnection, sql: string, parameters: readonly Parameter[] = []) {
  const { rows, notices } = await connection.run(sql, parameters);
  const texts = rows.map((row) => row.map((value) => (value === null ? null : new TextDecoder().decode(value))));
  return { rows: texts, notices };
}

describe("[CLU30] a connection", () => {
  test("proves its password, and nobody else's opens one", async () => {
    const connection = await open(postgres.url);
    expect((await ask(connection, "SELECT current_user, current_setting('application_name')")).rows).toEqual([
      ["postgres", "test"],
    ]);
    connection.close();
    await expect(open(`postgres://postgres:wrong@127.0.0.1:${postgres.port}/postgres`)).rejects.toThrow("28P01");
    await expect(open("postgres://postgres@127.0.0.1:1/postgres")).rejects.toThrow();
  });

  test("passes values as they are: texts, numbers, bytes, null", async () => {
    const connection = await open(postgres.url);
    const text = `it's "quoted" \\ 日本 $1`;
    const bytes = Uint8Array.from({ length: 100_000 }, (_, at) => at % 256);
    const { rows } = await ask(connection, "SELECT $1::text, $2::bigint, md5($3::bytea), $4::text", [
      text,
      -5,
      bytes,
      null,
    ]);
    expect(rows).toEqual([[text, "-5", new Bun.CryptoHasher("md5").update(bytes).digest("hex"), null]]);
    connection.close();
  });

  test("tells of notices, and of errors with their code, and goes on", async () => {
    const connection = await open(postgres.url);
    const noticed = await ask(connection, "DO $$ BEGIN RAISE WARNING 'beware'; END $$");
    expect(noticed.notices).toEqual(["beware"]);
    const failed = connection.run("SELECT 1 / 0");
    await expect(failed).rejects.toBeInstanceOf(PostgresError);
    await expect(failed).rejects.toMatchObject({ code: "22012" });
    expect(await ask(connection, "SELECT 1")).toEqual({ rows: [["1"]], notices: [] });
    connection.close();
  });

  test("answers in the order in which it was asked, each statement in a transaction of its own", async () => {
    const connection = await open(postgres.url);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) => ask(connection, "SELECT $1::bigint, pg_current_xact_id()", [at])),
    );
    expect(answers.map(({ rows }) => rows[0]?.[0])).toEqual(Array.from({ length: 50 }, (_, at) => String(at)));
    expect(new Set(answers.map(({ rows }) => rows[0]?.[1])).size).toBe(50);
    connection.close();
  });

  test("that ends by itself says so once, and what was under way has no answer", async () => {
    let closed = 0;
    const connection = await open(postgres.url, () => {
      closed += 1;
    });
    const [[pid] = []] = (await ask(connection, "SELECT pg_backend_pid()")).rows;
    const waiting = connection.run("SELECT pg_sleep(60)");
    waiting.catch(() => {});
    const other = await open(postgres.url);
    await ask(other, "SELECT pg_terminate_backend($1::int)", [String(pid)]);
    await expect(waiting).rejects.toThrow();
    await expect(connection.run("SELECT 1")).rejects.toThrow("has ended");
    expect(closed).toBe(1);
    other.close();
  });

  test("speaks TLS where it is asked to, and by default trusts no certificate of an unknown authority", async () => {
    const connection = await open(`${postgres.url}?sslmode=require`);
    expect((await ask(connection, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")).rows).toEqual([["t"]]);
    connection.close();
    await expect(open(`${postgres.url}?sslmode=verify-full`)).rejects.toThrow();
  });
});

test("[CLU30] messages are cut at their lengths, however they arrive", () => {
  const ready = Uint8Array.of(0x5a, 0, 0, 0, 5, 0x49);
  const row = Uint8Array.of(0x44, 0, 0, 0, 15, 0, 2, 0, 0, 0, 1, 0x37, 0xff, 0xff, 0xff, 0xff);
  const all = Buffer.concat([row, ready, row, ready]);
  for (let size = 1; size <= all.length; size++) {
    const reader = new MessageReader();
    const messages = [];
    for (let at = 0; at < all.length; at += size) messages.push(...reader.read(all.subarray(at, at + size)));
    expect(messages.map(({ kind }) => kind)).toEqual(["row", "ready", "row", "ready"]);
    expect(messages[0]).toEqual({ kind: "row", values: [Uint8Array.of(0x37), null] });
  }
  expect(() => new MessageReader().read(Uint8Array.of(0x44, 0x7f, 0xff, 0xff, 0xff))).toThrow("bytes");
});

test("[CLU31] a connection that is not opened by the other end is tried again, until it is told to stop", async () => {
  let taken = 0;
  const silent = createServer((socket) => {
    taken += 1;
    socket.on("error", () => {});
  }).listen(0, "127.0.0.1");
  await until("it listens", () => silent.listening);
  const address = silent.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const channel = new LogChannel({
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    incarnation: "a1",
    nonce: () => crypto.randomUUID(),
    // A hundred times faster.
    after: (delayMs, run) => void setTimeout(run, delayMs / 100),
    opened() {},
    closed() {},
    answered() {},
    failed() {},
  });
  channel.start();
  await until("it has tried three times", () => taken >= 3);
  channel.stop();
  silent.close();
});
