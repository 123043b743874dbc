import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { settle, temporaryDirectory, testClock } from "../../../../tests/support/index.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { HealthChecks } from "../../../kernel/observing/health.ts";
import { HOUR_MS } from "../../../kernel/time/duration.ts";
import { AcmeFiles } from "./acme/files.ts";
import { factsOf } from "./certificate.ts";
import { createTlsArea } from "./index.ts";
import { createSelfSigned } from "./job/job.ts";
import { FILES_LOOK_MS } from "./limits.ts";

test("[TL5] a new certificate that the server cannot use is stored, and the authority is not asked for another one", async () => {
  const clock = testClock();
  const dataDirectory = temporaryDirectory();
  const files = new AcmeFiles(dataDirectory);
  const config = { domains: ["a.example"], challengePort: 0 };
  let orders = 0;
  const area = createTlsArea({
    config,
    dataDirectory,
    isDrill: false,
    publicUrl: undefined,
    clock,
    logger: silentLogger,
    health: new HealthChecks({ clock, onFailure() {} }),
    async run({ kind }) {
      const pair = await createSelfSigned(config.domains, clock);
      if (kind === "selfSign") return files.writeSelfSigned(pair);
      orders += 1;
      files.writeCertificate(pair);
    },
  });
  await area.open();
  let tries = 0;
  area.begin({
    host: "127.0.0.1",
    port: 0,
    renew() {
      tries += 1;
      throw new Error("the port cannot be listened on twice");
    },
  });
  const until = async (isSo: () => boolean): Promise<void> => {
    const giveUpAt = performance.now() + 20_000;
    while (!isSo() && performance.now() < giveUpAt) await new Promise((resolve) => setImmediate(resolve));
    expect(isSo()).toBe(true);
  };
  await until(() => orders > 0);
  await settle();
  await clock.advanceAsync(3 * HOUR_MS);
  await settle();
  expect([orders, tries > 1]).toEqual([1, true]);
  await area.stop();
});

test("[TL13] files that change while a server starts are used", async () => {
  const clock = testClock();
  const directory = temporaryDirectory();
  const config = { cert: join(directory, "cert.pem"), key: join(directory, "key.pem") };
  const write = async (name: string): Promise<void> => {
    const { cert, key } = await createSelfSigned([name], clock);
    writeFileSync(config.cert, cert);
    writeFileSync(config.key, key);
  };
  await write("first.example");
  const area = createTlsArea({
    config,
    dataDirectory: directory,
    isDrill: false,
    publicUrl: undefined,
    clock,
    logger: silentLogger,
    health: new HealthChecks({ clock, onFailure() {} }),
  });
  await area.open();
  await write("second.example");
  const names: (readonly string[])[] = [];
  area.begin({ host: "127.0.0.1", port: 0, renew: (pair) => names.push(factsOf(pair).names) });
  await clock.advanceAsync(FILES_LOOK_MS);
  expect(names).toEqual([["second.example"]]);
  await area.stop();
});
