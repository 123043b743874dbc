import { expect, test } from "bun:test";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory, testClock } from "../../../../tests/support/index.ts";
import { FILES_LOOK_MS } from "./limits.ts";
import { FileWatch } from "./watch.ts";

test("[TL13] a file that cannot be looked at for a while is looked at again", async () => {
  const clock = testClock();
  const path = join(temporaryDirectory(), "certificate.pem");
  writeFileSync(path, "first");
  let changes = 0;
  const onChange = (): boolean => {
    changes += 1;
    return true;
  };
  const watch = new FileWatch([path], { clock, onChange });
  watch.start();
  rmSync(path);
  symlinkSync("certificate.pem", path);
  await clock.advanceAsync(FILES_LOOK_MS);
  rmSync(path);
  writeFileSync(path, "the second one");
  await clock.advanceAsync(FILES_LOOK_MS);
  expect(changes).toBeGreaterThan(0);
  const before = changes;
  await clock.advanceAsync(FILES_LOOK_MS);
  expect(changes).toBe(before);
  watch.stop();
  expect(clock.waiting).toBe(0);
});
