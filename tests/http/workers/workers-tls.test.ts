import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSocket, temporaryDirectory, testPlatform, until } from "../../support/index.ts";
import { createAuthority, type Pair } from "../../support/tls/certificates.ts";
import { peerOf } from "../../support/tls/peer.ts";

/** A new connection for each request: the system spreads connections over the processes. */
const ALONE = { headers: { connection: "close" } };
const T = "/api/db/shared/tables/notes";

/** The name in the certificate; null: the connection was reset, as one may be while a listener closes. */
const nameOf = (url: string): Promise<string | null> =>
  peerOf(url).then(
    ({ name }) => name,
    () => null,
  );

test("[WK5] workers speak HTTPS, and use a certificate that is renewed", async () => {
  const authority = await createAuthority();
  const directory = temporaryDirectory();
  const write = ({ cert, key }: Pair): void => {
    writeFileSync(join(directory, "cert.pem"), cert);
    writeFileSync(join(directory, "key.pem"), key, { mode: 0o600 });
  };
  write(await authority.sign({ names: ["one.example", "127.0.0.1"] }));
  const platform = await testPlatform({
    config: `{
      server: { workers: 2, tls: { cert: ${JSON.stringify(join(directory, "cert.pem"))}, key: ${JSON.stringify(join(directory, "key.pem"))} } },
      databases: { shared: { tables: { notes: { schema: { text: { type: "string" } }, access: { read: true, insert: true } } } } },
      storage: { buckets: { files: { access: { read: true, write: true } } } },
      realtime: {},
    }`,
    args: ["--host", "127.0.0.1"],
    ca: authority.cert,
  });
  const answeredBy = async (path: string): Promise<string> => {
    const answer = await platform.fetch(path, ALONE);
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
    return (answer.headers.get("x-request-id") ?? "").slice(0, 12);
  };
  const allAnswer = async (): Promise<void> => {
    const processes = new Set<string>();
    await until("each process has answered", async () => processes.add(await answeredBy(T)).size === 3);
  };
  await allAnswer();
  for (let n = 0; n < 30; n++) {
    const made = await platform.post<{ id: string }>(T, { text: `${n}` }, ALONE);
    expect(made.status).toBe(201);
    expect((await platform.get(`${T}/${made.body.id}`, ALONE)).status).toBe(200);
    const signed = await platform.service.post<{ url: string }>(
      "/api/storage/files/signed-upload-url",
      { key: `${n}` },
      ALONE,
    );
    expect(signed.body.url).toStartWith(`${platform.url}/`);
  }
  const sockets = await Promise.all(
    Array.from({ length: 12 }, () => openSocket(`${platform.wsUrl}/api/realtime`, {}, { rejectUnauthorized: false })),
  );
  write(await authority.sign({ names: ["two.example", "127.0.0.1"] }));
  const names = async () => new Set(await Promise.all(Array.from({ length: 24 }, () => nameOf(platform.url))));
  await until("all processes have the second certificate", async () =>
    Bun.deepEquals([...(await names())], ["two.example"]),
  );
  await allAnswer();
  for (const socket of sockets) {
    socket.send({ type: "ping" });
    await socket.expect({ type: "pong" });
    await socket.close();
  }
  await platform.stop();
}, 60_000);
