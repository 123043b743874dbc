import { afterAll, beforeAll, expect, test } from "bun:test";
import { platformCommand, type TestPlatform, testEnvironment, testPlatform, until } from "../support/index.ts";
import { random as seeded, testSeed } from "../support/random.ts";
import { type Acme, hasAcme, startAcme } from "../support/tls/acme.ts";
import { peerOf } from "../support/tls/peer.ts";

// A server, and the process that renews its certificate, are killed at random moments of a renewal.

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 5);
const SEED = testSeed(1_803);
const DOMAIN = "api.example.com";
/** A renewal takes about as long, from the start of its process on. */
const RENEWAL_MS = 1_500;

let acme: Acme;
let platform: TestPlatform;
beforeAll(async () => {
  if (!hasAcme) return;
  acme = await startAcme();
  const { directory, challengePort } = acme;
  platform = await testPlatform({
    config: {
      server: { tls: { domains: [DOMAIN], directory, challengePort } },
      databases: { shared: { tables: { notes: { access: { read: true, insert: true } } } } },
    },
    env: acme.env,
    args: ["--host", "127.0.0.1"],
  });
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  acme?.stop();
});

const renewal = () =>
  Bun.spawn(
    [...platformCommand(), "certificate", "renew", "--config", platform.configFile, "--data", platform.dataDirectory],
    { env: testEnvironment(acme.env), stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  );

/** Asks by a client that trusts the authority, so the certificate, its chain and its key belong together. */
async function ask(ca: string, method: "GET" | "POST", id: string): Promise<number> {
  const answer = await fetch(`${platform.url}/api/db/shared/tables/notes${method === "GET" ? `/${id}` : ""}`, {
    method,
    headers: { host: DOMAIN, "content-type": "application/json" },
    ...(method === "POST" ? { body: JSON.stringify({ id }) } : {}),
    tls: { ca, checkServerIdentity: () => undefined },
  });
  return answer.status;
}

test.skipIf(!hasAcme)(
  `[TL24] after a SIGKILL at any moment of a renewal there is one whole certificate (${ROUNDS} rounds, seed ${SEED})`,
  async () => {
    const random = seeded(SEED);
    await until("a certificate of the authority", async () => (await peerOf(platform.url)).issuer.startsWith("Pebble"));
    const ca = await acme.root();
    for (let round = 0; round < ROUNDS; round++) {
      expect(await ask(ca, "POST", `n${round}`)).toBe(201);
      const renewing = renewal();
      await Bun.sleep(random.below(RENEWAL_MS));
      const isServerKilled = random.chance(0.7);
      if (isServerKilled) await platform.kill("SIGKILL");
      renewing.kill("SIGKILL");
      await renewing.exited;
      if (isServerKilled) await platform.restart();
      expect([round, (await peerOf(platform.url)).issuer]).toEqual([round, expect.stringMatching(/^Pebble/)]);
      expect([round, await ask(ca, "GET", `n${round}`)]).toEqual([round, 200]);
    }
    const { serial } = await peerOf(platform.url);
    const last = renewal();
    expect([await last.exited, await last.stderr.text()]).toEqual([0, ""]);
    await until("the new certificate", async () => (await peerOf(platform.url)).serial !== serial);
    expect(await ask(ca, "GET", "n0")).toBe(200);
  },
  120_000,
);
