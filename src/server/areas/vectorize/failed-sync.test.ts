import { afterEach, expect, test } from "bun:test";
import fs, { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { createStorageEngine } from "../../db/index.ts";
import { extensionFile } from "../../db/vectors/extension.ts";
import { createVectorArea } from "./index.ts";

const dataDirectory = mkdtempSync(join(tmpdir(), "vectors-"));
let isBroken = false;
const engine = createStorageEngine({
  clock: systemClock,
  syncFile: (descriptor, done) =>
    isBroken ? setImmediate(() => done(new Error("EIO"))) : fs.fdatasync(descriptor, done),
});
afterEach(async () => {
  await engine.stop();
  rmSync(dataDirectory, { recursive: true });
});

test("[VZ102] after a failed sync neither searches nor writes are answered", async () => {
  const indexes = [{ name: "near", dimensions: 2, metric: "cosine" as const }];
  mkdirSync(join(dataDirectory, "vectorize"));
  const { path: extensionPath } = await extensionFile(dataDirectory);
  const area = createVectorArea({ indexes, engine, dataDirectory, extensionPath, logger: silentLogger });
  const vectors = area.accessor("near");
  await vectors.upsert([{ id: "a", values: [1, 0] }]);
  expect(await vectors.search([1, 0])).toHaveLength(1);
  isBroken = true;
  const refused = "until the server has been restarted";
  await expect(vectors.upsert([{ id: "lost", values: [1, 0] }])).rejects.toThrow(refused);
  isBroken = false;
  await expect(vectors.search([1, 0])).rejects.toThrow(refused);
  await expect(vectors.delete(["a"])).rejects.toThrow(refused);
  await area.stop();
});
