import { expect, test } from "bun:test";
import { join } from "node:path";
import { settle, temporaryDirectory, testClock, until } from "../../../../tests/support/index.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { Foreground } from "../../../kernel/observing/foreground.ts";
import { createStorageEngine, type DatabaseFile } from "../../db/index.ts";
import { Drains } from "./drains.ts";
import { DRAIN_RETRY_MS, DRAINS_MAX } from "./limits.ts";

const FILES = 50;

test("[TG8] files that fail together, as on a full disk, are tried again a few at a time", async () => {
  const clock = testClock();
  let most = 0;
  let tries = 0;
  const open = new Set<() => void>();
  // A file whose writes fail on demand.
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

test("[TG8] what waits in an instance that is deleted and created again meanwhile is passed", async () => {
  const directory = temporaryDirectory();
  const engine = createStorageEngine({ clock: systemClock });
  const fileWith = async (name: string, ids: readonly string[]): Promise<DatabaseFile> => {
    const outbox = { origin: () => ({ depth: 0, root: null }), onWaiting() {} };
    const file = engine.open(join(directory, `${name}.db`), { outbox });
    const row = { names: ["run"], group: null, key: null, dueAt: null, data: "{}", secret: null };
    await file.write((tx) => {
      for (const id of ids) tx.enqueue({ ...row, id });
    });
    return file;
  };
  let file = await fileWith("deleted", ["a", "b"]);
  const createdAgain = await fileWith("created-again", ["c", "d", "e"]);
  const passed: string[] = [];
  const drains = new Drains({
    async pass(jobs) {
      passed.push(...jobs.map(({ id }) => id));
      file = createdAgain;
    },
    fileOf: () => file,
    foreground: new Foreground(),
    clock: testClock(),
    logger: silentLogger,
  });
  drains.wake({ kind: "tables", namespace: "teams", instanceId: "red" });
  await until("all are passed", () => passed.includes("e"));
  expect(passed).toEqual(["a", "b", "c", "d", "e"]);
  await drains.stop();
  await engine.stop();
});

test("[TG21] files that are written all the time leave others their turn", async () => {
  const passed = new Set<string>();
  let seq = 0;
  // Each step finds another row.
  const fileOf = (name: string) =>
    ({
      write: async () => [
        { seq: ++seq, id: String(seq), names: [name], group: null, key: null, dueAt: null, data: "null" },
      ],
    }) as unknown as DatabaseFile;
  const drains = new Drains({
    pass: async (jobs) => void jobs.map(({ name }) => passed.add(name)),
    fileOf: (place) => fileOf(place.kind === "tables" ? (place.instanceId ?? "") : ""),
    foreground: new Foreground(),
    clock: testClock(),
    logger: silentLogger,
  });
  const names = Array.from({ length: DRAINS_MAX + 2 }, (_, n) => `file ${n}`);
  for (const instanceId of names) drains.wake({ kind: "tables", namespace: "teams", instanceId });
  await until("each has had its turn", () => names.every((name) => passed.has(name)));
  await drains.stop();
});
