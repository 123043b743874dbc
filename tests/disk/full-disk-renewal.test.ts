import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { platformCommand, testEnvironment, testPlatform, until } from "../support/index.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { hasAcme, startAcme } from "../support/tls/acme.ts";
import { peerOf } from "../support/tls/peer.ts";

const disk = mountSmallDisk(16);
afterAll(() => disk?.unmount());
if (disk === null) console.warn("no renewal on a full disk is tested: this process may not mount one");

test.if(disk !== null && hasAcme)(
  "[TL25] a renewal on a full disk fails and says so; the certificate that there is goes on, also after a restart",
  async () => {
    const acme = await startAcme();
    const directory = disk?.directory ?? "";
    const { directory: acmeDirectory, challengePort } = acme;
    const platform = await testPlatform({
      config: { server: { tls: { domains: ["api.example.com"], directory: acmeDirectory, challengePort } } },
      env: acme.env,
      args: ["--host", "127.0.0.1", "--data", directory],
    });
    const renew = async () => {
      const args = ["certificate", "renew", "--config", platform.configFile, "--data", directory];
      const child = Bun.spawn([...platformCommand(), ...args], {
        env: testEnvironment(acme.env),
        stdout: "pipe",
        stderr: "pipe",
      });
      const [code, stderr] = await Promise.all([child.exited, child.stderr.text()]);
      return { code, stderr };
    };
    await until("a certificate of the authority", async () => (await peerOf(platform.url)).issuer.startsWith("Pebble"));
    const { serial } = await peerOf(platform.url);
    const file = join(directory, "tls/certificate.pem");
    const stored = readFileSync(file, "utf8");
    const orders = acme.orders();
    disk?.fill();
    const refused = await renew();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/no space|disk.*full|full/i);
    expect(refused.stderr.trim().split("\n")).toHaveLength(1);
    expect(acme.orders()).toBe(orders);
    expect([readFileSync(file, "utf8"), (await peerOf(platform.url)).serial]).toEqual([stored, serial]);
    await platform.kill("SIGKILL");
    disk?.free();
    await platform.restart();
    expect((await peerOf(platform.url)).serial).toBe(serial);
    expect(await renew()).toMatchObject({ code: 0, stderr: "" });
    await until("the new certificate", async () => (await peerOf(platform.url)).serial !== serial);
    await platform.stop();
    acme.stop();
  },
  60_000,
);
