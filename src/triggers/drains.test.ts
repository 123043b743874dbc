import { expect, test } from "bun:test";
import { settle, testClock } from "../../tests/support/index.ts";
import type { DatabaseFile } from "../db/index.ts";
import { silentLogger } from "../kernel/logger.ts";
import { Foreground } from "../kernel/observing/foreground.ts";
import { Drains } from "./drains.ts";
import { DRAIN_RETRY_MS, DRAINS_MAX } from "./limits.ts";

const FILES = 50;

test("[TG8] files that fail together, as on a full disk, are tried again a few at a time", async () => {
  const clock = testClock();
  let most = 0;
  let tries = 0;
  const open = new Set<() => void>();
  // A file whose writes fail when the test says so.
  const file = {
    write() {
      tries += 1;
      const { promise, reject } = Promise.withResolvers<never>();
      const fail = (): void => {
        open.delete(fail);
        reject(new Error("no space left on device"));
      };
      open.add(fail);
      most = Math.max(most, open.size);
      return promise;
    },
  } as unknown as DatabaseFile;
  const drains = new Drains({
    pass: async () => {},
    fileOf: () => file,
    foreground: new Foreground(),
    clock,
    logger: silentLogger,
  });
  const failAll = async (): Promise<void> => {
    while (open.size > 0) {
      for (const fail of [...open]) fail();
      await settle();
    }
  };
  for (let n = 0; n < FILES; n++) drains.wake({ kind: "tables", namespace: "teams", instanceId: String(n) });
  await failAll();
  expect([tries, most]).toEqual([FILES, DRAINS_MAX]);
  await clock.advanceAsync(DRAIN_RETRY_MS);
  await failAll();
  expect([tries, most]).toEqual([2 * FILES, DRAINS_MAX]);
  await drains.stop();
  expect(clock.waiting).toBe(0);
});
