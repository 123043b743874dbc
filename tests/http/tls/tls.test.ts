import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import {
  openSocket,
  type TestPlatform,
  type TestPlatformOptions,
  temporaryDirectory,
  testPlatform,
  until,
} from "../../support/index.ts";
import { attemptStart } from "../../support/start-attempt.ts";
import { freePorts } from "../../support/tls/acme.ts";
import { type Authority, createAuthority, type Pair } from "../../support/tls/certificates.ts";
import { peerOf } from "../../support/tls/peer.ts";

// A server with a certificate in files.

const BROKEN = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

let authority: Authority;
let platforms: TestPlatform[] = [];
let directory: string;

beforeAll(async () => {
  authority = await createAuthority();
});
afterEach(async () => {
  await Promise.all(platforms.map((platform) => platform.stop()));
  platforms = [];
});
afterAll(() => {});

function write(pair: Pair, folder = directory): void {
  writeFileSync(join(folder, "cert.pem"), pair.cert);
  writeFileSync(join(folder, "key.pem"), pair.key, { mode: 0o600 });
}

const tlsOf = (more: object = {}, folder = directory): string =>
  JSON.stringify({ cert: join(folder, "cert.pem"), key: join(folder, "key.pem"), ...more });

async function start(pair: Pair, { config = "", tls = {}, ...options }: StartOptions = {}): Promise<TestPlatform> {
  directory = temporaryDirectory();
  write(pair);
  const platform = await testPlatform({
    config: `{ server: { tls: ${tlsOf(tls)} }, ${config} }`,
    args: ["--host", "127.0.0.1"],
    ca: authority.cert,
    ...options,
  });
  platforms.push(platform);
  return platform;
}

type StartOptions = Partial<Omit<TestPlatformOptions, "config">> & { config?: string; tls?: object };

const nameOf = async (platform: TestPlatform) => (await peerOf(platform.url)).name;

test("[TL12] a certificate in files serves HTTPS and WebSockets, and signed URLs begin with https", async () => {
  const platform = await start(await authority.sign(), {
    config: `storage: { buckets: { files: { access: { read: true, write: true } } } }, realtime: {},
      auth: { oauth: { github: { clientId: "id", clientSecret: "secret" } }, redirectUrls: ["https://app.example/*"] }`,
  });
  expect(platform.stdout()).toMatch(/^platform listening on https:\/\/127\.0\.0\.1:\d+\n/);
  expect((await platform.get("/api/health")).body).toMatchObject({ status: "ok" });
  const url = await platform.service.post<{ url: string }>("/api/storage/files/signed-upload-url", { key: "a.txt" });
  expect(url.body.url).toStartWith(`${platform.url}/`);
  const tls = { ca: authority.cert };
  const put = await fetch(url.body.url, { method: "PUT", body: "hello", tls });
  expect(put.status).toBe(200);
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`, {}, { rejectUnauthorized: false });
  socket.send({ type: "ping" });
  await socket.expect({ type: "pong" });
  await socket.close();
  const begun = await platform.fetch("/api/auth/oauth/github?redirect_url=https://app.example/in");
  expect([begun.status, begun.headers.get("set-cookie")]).toEqual([302, expect.stringContaining("; Secure")]);
  // A Host that a URL can hardly have is answered too.
  for (const host of ["x", "ab", "a.b", "localhost:1"]) {
    const answer = await platform.fetch("/api/health", { headers: { host } });
    expect([host, answer.status]).toEqual([host, 200]);
  }
  expect((await platform.fetch("/nothing")).status).toBe(404);
});

test("[TL13] files that change are used without a restart, when both belong together", async () => {
  const platform = await start(await authority.sign({ names: ["one.example"] }));
  expect(await nameOf(platform)).toBe("one.example");
  const two = await authority.sign({ names: ["two.example"] });
  writeFileSync(join(directory, "cert.pem"), two.cert);
  await until("the warning", () => platform.stderr().includes("tls: the changed certificate was refused"));
  expect(await nameOf(platform)).toBe("one.example");
  writeFileSync(join(directory, "key.pem"), two.key);
  await until("the new certificate", async () => (await nameOf(platform)) === "two.example");
  rmSync(join(directory, "cert.pem"));
  await until("another warning", () => platform.stderr().includes("ENOENT"));
  expect(await nameOf(platform)).toBe("two.example");
  write(await authority.sign({ names: ["three.example"] }));
  await until("the third certificate", async () => (await nameOf(platform)) === "three.example");
});

test("[TL13] health says why changed files are not used, until they are, or those of before are back", async () => {
  const first = await authority.sign({ names: ["one.example"] });
  const platform = await start(first);
  const certificate = async () => {
    const { body } = await platform.service.get<{ checks: { certificate: { ok: boolean; problem: string | null } } }>(
      "/api/health?full",
    );
    return body.checks.certificate;
  };
  expect(await certificate()).toMatchObject({ ok: true, problem: null });
  for (const next of [await authority.sign({ names: ["two.example"] }), first]) {
    writeFileSync(join(directory, "cert.pem"), "no certificate");
    await until("the problem", async () => (await certificate()).problem !== null);
    expect(await certificate()).toMatchObject({
      ok: false,
      problem: expect.stringContaining("The changed certificate is not used: the certificate cannot be read"),
    });
    write(next);
    await until("the end of the problem", async () => (await certificate()).ok);
    expect(await certificate()).toMatchObject({ problem: null });
  }
});

test("[TL13] a link that is replaced, as containers do with secrets, is a change", async () => {
  const root = temporaryDirectory();
  for (const name of ["one.example", "two.example"]) {
    mkdirSync(join(root, name));
    write(await authority.sign({ names: [name] }), join(root, name));
  }
  symlinkSync(join(root, "one.example"), join(root, "current"));
  const platform = await testPlatform({
    config: `{ server: { tls: ${tlsOf({}, join(root, "current"))} } }`,
    args: ["--host", "127.0.0.1"],
  });
  platforms.push(platform);
  symlinkSync(join(root, "two.example"), join(root, "next"));
  renameSync(join(root, "next"), join(root, "current"));
  await until("the new certificate", async () => (await nameOf(platform)) === "two.example");
});

test("[TL14] files that cannot be used stop the start with their names", async () => {
  const [one, two] = [await authority.sign(), await authority.sign()];
  const folder = temporaryDirectory();
  const configFile = join(folder, "platform.config.ts");
  writeFileSync(configFile, `export default { server: { tls: ${tlsOf({}, folder)} } };`);
  const cases: [Pair | null, string][] = [
    [null, "ENOENT"],
    [{ cert: one.cert, key: two.key }, "the key is not that of the certificate"],
    [{ cert: "nothing", key: one.key }, "the certificate cannot be read"],
    [{ cert: one.cert, key: "nothing" }, "the private key cannot be read"],
    [{ cert: authority.cert + one.cert, key: one.key }, "the certificate of the key is not the first one"],
    [{ cert: `${one.cert}${BROKEN}`, key: one.key }, "certificate 3 of the file cannot be read"],
    [{ cert: one.cert.slice(0, -100), key: one.key }, "certificate 2 of the file cannot be read"],
  ];
  for (const [pair, message] of cases) {
    if (pair !== null) write(pair, folder);
    const attempt = await attemptStart({ configFile, dataDirectory: join(folder, "data") });
    expect([attempt.hasStarted, attempt.exitCode]).toEqual([false, 1]);
    expect(attempt.stderr).toContain(join(folder, "cert.pem"));
    expect(attempt.stderr).toContain(message);
  }
});

/** Sends a text, and gives the first part of the answer. */
function sendTo(port: number, text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(port, "127.0.0.1", () => socket.write(text));
  socket.once("data", (bytes) => {
    socket.destroy();
    resolve(bytes.toString("latin1"));
  });
  socket.on("error", reject);
  return promise;
}

test("[TL8] redirectPort redirects to the host of the certificate, and to publicUrl where that is HTTPS", async () => {
  const [port = 0] = freePorts(1);
  const pair = await authority.sign({ names: ["a.example", "*.b.example"] });
  const platform = await start(pair, { tls: { redirectPort: port } });
  const ask = async (host: string, path = "/x?y") => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { host }, redirect: "manual" });
    return [answer.status, answer.headers.get("location")];
  };
  const own = new URL(platform.url).port;
  expect(await ask("a.example")).toEqual([308, `https://a.example:${own}/x?y`]);
  expect(await ask("c.b.example")).toEqual([308, `https://c.b.example:${own}/x?y`]);
  expect(await ask("d.c.b.example")).toEqual([308, `https://a.example:${own}/x?y`]);
  expect(await ask("127.0.0.1")).toEqual([308, `https://127.0.0.1:${own}/x?y`]);
  expect((await ask("a.example", "/.well-known/acme-challenge/abc"))[0]).toBe(404);
  for (const target of ["other.example:443", "x:.other.example", "x:@other.example"]) {
    const answer = await sendTo(port, `CONNECT ${target} HTTP/1.1\r\nHost: a.example\r\n\r\n`);
    expect([target, answer.split("\r\n")[0]]).toEqual([target, "HTTP/1.1 400 Bad Request"]);
  }
  const { configFile } = platform;
  await platform.restart({
    config: `{ server: { publicUrl: "https://p.example/base", tls: ${tlsOf({ redirectPort: port })} } }`,
  });
  expect(await ask("a.example")).toEqual([308, "https://a.example/x?y"]);
  expect(await ask("q.example")).toEqual([308, "https://p.example/x?y"]);
  expect(configFile).toContain("platform.config.ts");
});

test("[TL15] a certificate that is not valid yet is a degraded health", async () => {
  const platform = await start(await authority.sign({ startedDaysAgo: -1 }));
  const health = await fetch(`${platform.url}/api/health?full=true`, {
    headers: { "x-platform-service-key": platform.serviceKey },
    tls: { rejectUnauthorized: false },
  });
  expect(await health.json()).toMatchObject({
    status: "degraded",
    checks: { certificate: { ok: false, selfSigned: false } },
  });
});

test("[TL15] an expiring certificate is a degraded health; a taken port stops the start", async () => {
  const platform = await start(await authority.sign({ days: 90, startedDaysAgo: 86 }));
  const health = await platform.service.get("/api/health?full=true");
  expect(health.body).toMatchObject({ status: "degraded", checks: { certificate: { ok: false, selfSigned: false } } });
  const folder = temporaryDirectory();
  const configFile = join(folder, "platform.config.ts");
  const { port } = new URL(platform.url);
  const command = `export default { server: { tls: ${tlsOf({ redirectPort: Number(port) })} } };`;
  writeFileSync(configFile, command);
  const attempt = await attemptStart({ configFile, dataDirectory: join(folder, "data") });
  expect([attempt.hasStarted, attempt.stderr.includes(`port ${port}`)]).toEqual([false, true]);
});

test("[TL16] a renewal loses no request of a client that keeps asking", async () => {
  const platform = await start(await authority.sign({ names: ["one.example"] }));
  let isDone = false;
  let answered = 0;
  const ask = async (): Promise<void> => {
    while (!isDone) {
      const answer = await platform.fetch("/api/health");
      await answer.text();
      expect(answer.status).toBe(200);
      answered++;
    }
  };
  const asking = Promise.all([ask(), ask(), ask(), ask()]);
  write(await authority.sign({ names: ["two.example"] }));
  await until("the new certificate", async () => (await nameOf(platform)) === "two.example");
  const before = answered;
  await until("more answers", () => answered > before + 100);
  isDone = true;
  await asking;
});
