import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { settle, temporaryDirectory, testClock } from "../../../../tests/support/index.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../kernel/time/duration.ts";
import { AcmeFiles } from "./acme/files.ts";
import { failed, NO_FAILURE, orderOf } from "./acme/renewal-time.ts";
import type { CertificateFacts } from "./certificate.ts";
import { Renewals } from "./renewals.ts";

const config = { domains: ["a.example"] };
const LIFE_MS = 90 * DAY_MS;

/** Creates a renewal that fails or succeeds as the test says. `isFull`: nothing can be written. */
function setUp({ isReachable, isFull = false }: { isReachable: boolean; isFull?: boolean }) {
  const clock = testClock();
  const dataDirectory = temporaryDirectory();
  const files = new AcmeFiles(dataDirectory);
  const world = { isReachable, attempts: [] as number[], facts: null as CertificateFacts | null };
  const startedAt = clock.now();
  const renewals = new Renewals({
    config,
    dataDirectory,
    files,
    clock,
    logger: silentLogger,
    async run() {
      world.attempts.push(clock.now() - startedAt);
      if (isFull) throw new Error("ENOSPC: no space left on device");
      if (!world.isReachable) {
        files.writeState(failed(files.readState(), { order: orderOf(config), problem: "no", now: clock.now() }));
        throw new Error("no");
      }
      files.writeState(NO_FAILURE);
      world.facts = { names: config.domains, validFrom: clock.now(), validUntil: clock.now() + LIFE_MS };
    },
    facts: () => world.facts,
    onRenewed() {},
  });
  return { clock, files, renewals, world };
}

test("[TL17] a certificate of 90 days is renewed every 60 days", async () => {
  const { clock, renewals, world } = setUp({ isReachable: true });
  renewals.start();
  await settle();
  await clock.advanceAsync(200 * DAY_MS);
  expect(world.attempts.map((at) => at / DAY_MS)).toEqual([0, 60, 120, 180]);
  await renewals.stop();
  expect(clock.waiting).toBe(0);
});

test("[TL4][TL5] it keeps trying with growing pauses, and goes on when the authority answers", async () => {
  const { clock, renewals, world } = setUp({ isReachable: false });
  renewals.start();
  await settle();
  await clock.advanceAsync(HOUR_MS);
  expect(world.attempts.map((at) => at / MINUTE_MS)).toEqual([0, 2, 12, 42]);
  expect(renewals.problem).toBe("no");
  world.isReachable = true;
  await clock.advanceAsync(HOUR_MS);
  expect(renewals.problem).toBeNull();
  expect(world.attempts).toHaveLength(5);
  await clock.advanceAsync(59 * DAY_MS);
  expect(world.attempts).toHaveLength(5);
  await renewals.stop();
});

test("[TL5] a state that cannot be read stops no renewal", async () => {
  const { clock, files, renewals, world } = setUp({ isReachable: true });
  mkdirSync(join(files.directory, "state.json"), { recursive: true });
  renewals.start();
  await settle();
  expect([world.attempts.length, renewals.problem]).toEqual([1, null]);
  await renewals.stop();
  expect(clock.waiting).toBe(0);
});

test("[TL25] where a failure cannot be written down, the next attempt follows after two minutes all the same", async () => {
  const { clock, renewals, world } = setUp({ isReachable: false, isFull: true });
  renewals.start();
  await settle();
  await clock.advanceAsync(5 * MINUTE_MS);
  expect(world.attempts.map((at) => at / MINUTE_MS)).toEqual([0, 2, 4]);
  await renewals.stop();
  expect(clock.waiting).toBe(0);
});
