import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  openSocket,
  platformCommand,
  type TestPlatform,
  type TestPlatformOptions,
  testEnvironment,
  testPlatform,
  until,
} from "../../support/index.ts";
import { type Acme, freePorts, hasAcme, startAcme } from "../../support/tls/acme.ts";
import { peerOf } from "../../support/tls/peer.ts";

// Certificates from a certificate authority, against Debian's pebble.

const DOMAINS = ["api.example.com", "www.example.com"];
const PAGE = "x".repeat(4 * 1024 * 1024);

let acme: Acme;
let platforms: TestPlatform[] = [];

beforeAll(async () => {
  if (hasAcme) acme = await startAcme();
});
afterEach(async () => {
  await Promise.all(platforms.map((platform) => platform.stop()));
  platforms = [];
});
afterAll(() => acme?.stop());

const configOf = (tls: object = {}): string => `{
  server: { tls: ${JSON.stringify({ domains: DOMAINS, directory: acme.directory, challengePort: acme.challengePort, ...tls })} },
  databases: { shared: { tables: { notes: { access: { read: true } } } } },
  storage: { buckets: { files: { access: { read: true, write: true } } } },
}`;

async function start(options: Partial<TestPlatformOptions> = {}): Promise<TestPlatform> {
  const platform = await testPlatform({
    config: configOf(),
    env: acme.env,
    args: ["--host", "127.0.0.1"],
    ...options,
  });
  platforms.push(platform);
  return platform;
}

/** Runs `platform certificate …` beside a server. */
async function certificate(platform: TestPlatform, ...args: string[]) {
  const { configFile: config, dataDirectory: data } = platform;
  const command = [...platformCommand(), "certificate", ...args, "--config", config, "--data", data];
  const child = Bun.spawn(command, { env: testEnvironment(acme.env), stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { stdout, stderr, code };
}

const isSigned = async (platform: TestPlatform) => (await peerOf(platform.url)).issuer.startsWith("Pebble");
const trusted = (platform: TestPlatform) => until("a certificate of the authority", () => isSigned(platform));

/** Past the checks of clients, which the tests of the certificate itself do not need. */
const UNCHECKED = { tls: { rejectUnauthorized: false } } as RequestInit;

interface Health {
  status: string;
  checks: { certificate: { ok: boolean; validUntil: string; selfSigned: boolean; problem: string | null } };
}

async function health(platform: TestPlatform): Promise<Health> {
  const answer = await platform.service.fetch("/api/health?full=true", UNCHECKED);
  return (await answer.json()) as Health;
}

test.skipIf(!hasAcme)("[TL1][TL2][TL6] gets a certificate for all domains, and keeps it for itself", async () => {
  const platform = await start();
  expect(platform.stdout()).toMatch(/^platform listening on https:\/\/127\.0\.0\.1:\d+\n/);
  await trusted(platform);
  const ca = await acme.root();
  for (const name of DOMAINS) {
    const tls = { ca, checkServerIdentity: undefined, serverName: name };
    const answer = await platform.fetch("/api/health", { tls, headers: { host: name } } as never);
    expect([name, answer.status]).toEqual([name, 200]);
  }
  const directory = join(platform.dataDirectory, "tls");
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(directory).filter((each) => each.endsWith(".pem") || each.endsWith(".json"))) {
    expect([name, statSync(join(directory, name)).mode & 0o777]).toEqual([name, 0o600]);
  }
  const archive = join(platform.dataDirectory, "../backup.platform");
  const command = [...platformCommand(), "backup", archive, "--data", platform.dataDirectory];
  expect(Bun.spawnSync(command, { env: testEnvironment() }).exitCode).toBe(0);
  const restored = join(platform.dataDirectory, "../restored");
  expect(Bun.spawnSync([...platformCommand(), "restore", archive, "--data", restored]).exitCode).toBe(0);
  expect([existsSync(join(restored, "system.db")), existsSync(join(restored, "tls"))]).toEqual([true, false]);
  const { checks } = await health(platform);
  expect(checks.certificate).toMatchObject({ ok: true, selfSigned: false, problem: null });
  expect(Date.parse(checks.certificate.validUntil)).toBeGreaterThan(Date.now());
});

test.skipIf(!hasAcme)("[TL3] a restart uses the stored certificate, and asks the authority for nothing", async () => {
  const platform = await start();
  await trusted(platform);
  const [{ serial }, orders] = [await peerOf(platform.url), acme.orders()];
  await platform.restart();
  expect((await peerOf(platform.url)).serial).toBe(serial);
  expect((await health(platform)).checks.certificate.ok).toBe(true);
  expect(acme.orders()).toBe(orders);
});

test.skipIf(!hasAcme)("[TL3] another domain in the config is a reason to get another certificate", async () => {
  const platform = await start();
  await trusted(platform);
  const { serial } = await peerOf(platform.url);
  await platform.restart({ config: configOf({ domains: [...DOMAINS, "more.example.com"] }) });
  await until("the new certificate", async () => (await peerOf(platform.url)).serial !== serial);
  expect((await certificate(platform)).stdout).toContain("api.example.com, www.example.com, more.example.com: valid");
});

test.skipIf(!hasAcme)(
  "[TL4][TL5] without an answer of the authority it listens self-signed, says so, and waits over restarts",
  async () => {
    const [closed = 0] = freePorts(1);
    const platform = await start({ config: configOf({ directory: `https://localhost:${closed}/dir` }) });
    expect((await peerOf(platform.url)).issuer).toBe("api.example.com");
    await until("the failure", () => platform.stderr().includes("could not be renewed"));
    const { status, checks } = await health(platform);
    expect(status).toBe("degraded");
    expect(checks.certificate).toMatchObject({ ok: false, selfSigned: true });
    expect(checks.certificate.problem).toContain(`localhost:${closed} does not answer: nothing listens there`);
    const shown = await certificate(platform);
    expect(shown.code).toBe(1);
    expect(shown.stdout).toMatch(
      /There is no certificate yet\nThe last renewal failed: .+\nThe server tries again at 20/,
    );
    const stateFile = join(platform.dataDirectory, "tls/state.json");
    const state = JSON.parse(readFileSync(stateFile, "utf8"));
    expect(state.failures).toBe(1);
    const { serial } = await peerOf(platform.url);
    await platform.restart();
    expect((await health(platform)).checks.certificate.problem).toContain(`localhost:${closed} does not answer`);
    expect(platform.stderr()).not.toContain("tls: requesting a certificate");
    expect(JSON.parse(readFileSync(stateFile, "utf8"))).toEqual(state);
    expect((await peerOf(platform.url)).serial).toBe(serial);

    // Another authority is another order: it is asked at once.
    await platform.restart({ config: configOf() });
    await trusted(platform);
    expect((await health(platform)).checks.certificate).toMatchObject({ ok: true, problem: null });
  },
);

test.skipIf(!hasAcme)("[TL5] a server that is killed while it asks does not ask again at once", async () => {
  // A server that never answers.
  const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const platform = await start({ config: configOf({ directory: `https://127.0.0.1:${silent.port}/dir` }) });
  const stateFile = join(platform.dataDirectory, "tls/state.json");
  await until("the attempt", () => existsSync(stateFile));
  await platform.kill("SIGKILL");
  await platform.restart();
  expect((await health(platform)).checks.certificate.problem).toBe("It was interrupted");
  expect(platform.stderr()).not.toContain("tls: requesting a certificate");
  silent.stop(true);
});

test.skipIf(!hasAcme)("[TL5] an authority that cannot reach the challenge is a failure that names why", async () => {
  const [other = 0] = freePorts(1);
  const platform = await start({ config: configOf({ challengePort: other }) });
  await until("the failure", () => platform.stderr().includes("could not be renewed"));
  expect((await health(platform)).checks.certificate.problem).toContain("connect");
  expect(readdirSync(join(platform.dataDirectory, "tls/challenges"))).toEqual([]);
});

test.skipIf(!hasAcme)("[TL7][TL21] certificate renew beside a server: no connection is lost", async () => {
  const platform = await start();
  await trusted(platform);
  const { serial } = await peerOf(platform.url);
  const put = await platform.service.fetch("/api/storage/files/upload", {
    ...UNCHECKED,
    method: "POST",
    body: formWith(PAGE),
  });
  expect(put.status).toBe(201);
  const socket = await openUnchecked(platform);
  const download = await platform.fetch("/api/storage/files/page.bin", UNCHECKED);
  const renewed = await certificate(platform, "renew");
  expect([renewed.code, renewed.stdout]).toEqual([0, expect.stringContaining("www.example.com: valid until 20")]);
  await until("the new certificate", async () => (await peerOf(platform.url)).serial !== serial);
  expect((await download.text()).length).toBe(PAGE.length);
  const noted = await platform.service.fetch("/api/db/shared/tables/notes", {
    ...UNCHECKED,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: "after" }),
  });
  expect(noted.status).toBe(201);
  await socket.expect({ type: "db_change", data: { text: "after" } });
  await socket.close();
});

test.skipIf(!hasAcme)("[TL7] certificate renew without a server answers challenges itself", async () => {
  const platform = await start();
  await trusted(platform);
  const { serial } = await peerOf(platform.url);
  await platform.kill("SIGTERM");
  expect(await certificate(platform, "renew")).toMatchObject({ code: 0, stderr: "" });
  await platform.restart();
  expect((await peerOf(platform.url)).serial).not.toBe(serial);
});

test.skipIf(!hasAcme)("[TL8] the port of challenges redirects to HTTPS, to hosts of the certificate only", async () => {
  const platform = await start();
  await trusted(platform);
  const { port } = new URL(platform.url);
  const ask = async (path: string, host: string, method = "GET") => {
    const url = `http://127.0.0.1:${acme.challengePort}${path}`;
    const answer = await fetch(url, { method, headers: { host }, redirect: "manual" });
    return [answer.status, answer.headers.get("location")];
  };
  expect(await ask("/a/b?c=d", "www.example.com")).toEqual([308, `https://www.example.com:${port}/a/b?c=d`]);
  expect(await ask("/a", "www.example.com:80", "POST")).toEqual([308, `https://www.example.com:${port}/a`]);
  for (const host of ["evil.example", "127.0.0.1", "www.example.com.evil.example", "x"]) {
    expect([host, await ask("/", host)]).toEqual([host, [308, `https://api.example.com:${port}/`]]);
  }
  for (const token of ["nothing", "../state.json", "..%2fstate.json", "%2e%2e/certificate.pem", "a".repeat(300)]) {
    const [status] = await ask(`/.well-known/acme-challenge/${token}`, "www.example.com");
    expect([token, status === 404 || status === 308]).toEqual([token, true]);
  }
});

test.skipIf(!hasAcme)(
  "[TL9] a broken stored certificate is replaced, and another one does not end the server",
  async () => {
    const platform = await start();
    await trusted(platform);
    const file = join(platform.dataDirectory, "tls/certificate.pem");
    chmodSync(file, 0o600);
    const brokenIssuer = `${readFileSync(file, "utf8")}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`;
    for (const broken of ["-----BEGIN nothing", brokenIssuer]) {
      await platform.kill("SIGTERM");
      writeFileSync(file, broken);
      await platform.restart();
      await trusted(platform);
    }
    const { serial } = await peerOf(platform.url);
    writeFileSync(file, "-----BEGIN nothing");
    await until("the warning", () => platform.stderr().includes("tls: the changed certificate was refused"));
    expect((await peerOf(platform.url)).serial).toBe(serial);
  },
);

test.skipIf(!hasAcme)("[TL11] an account that the authority does not know any more is replaced", async () => {
  const platform = await start();
  await trusted(platform);
  const directory = join(platform.dataDirectory, "tls");
  const [name = ""] = readdirSync(directory).filter((each) => each.startsWith("account-"));
  const account = JSON.parse(readFileSync(join(directory, name), "utf8"));
  writeFileSync(join(directory, name), JSON.stringify({ ...account, url: `${account.url}0000` }));
  expect(await certificate(platform, "renew")).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(readFileSync(join(directory, name), "utf8")).key).not.toBe(account.key);
});

test.skipIf(!hasAcme)("[TL10] a drill asks the authority for nothing", async () => {
  const orders = acme.orders();
  const platform = await start({ args: ["--host", "127.0.0.1", "--drill"] });
  expect((await health(platform)).checks.certificate).toMatchObject({ ok: false, selfSigned: true, problem: null });
  expect(platform.stderr()).not.toContain("tls: requesting a certificate");
  expect(acme.orders()).toBe(orders);
});

function formWith(text: string): FormData {
  const form = new FormData();
  form.set("key", "page.bin");
  form.set("file", new File([text], "page.bin"));
  return form;
}

/** A realtime socket that hears of notes. */
async function openUnchecked(platform: TestPlatform) {
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`, {}, { rejectUnauthorized: false });
  socket.send({ type: "auth", anonymous: true });
  await socket.expect({ type: "auth_success" });
  socket.send({ type: "subscribe", channel: "realtime:shared:notes" });
  await socket.expect({ type: "subscribed" });
  return socket;
}
