/** Tests of the sync before commits leave the machine. */
import { expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../../../kernel/clock.ts";
import { createStorageEngine } from "../../../../db/index.ts";
import { Capture } from "./capture.ts";
import { Spool } from "./spool.ts";

test("[BK330] a file that is being closed has its commits on the disk before they leave the machine", async () => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "sync-"));
  const clock = systemClock;
  const spool = new Spool({ dataDirectory, clock, bytesMax: 10_000_000 });
  const engine = createStorageEngine({ clock, capture: new Capture({ dataDirectory, spool, clock }) });
  const file = engine.open(join(dataDirectory, "kv.db"), {
    migrate: (sqlite) => void sqlite.run("CREATE TABLE IF NOT EXISTS t (n)"),
  });
  await file.commit((tx) => void tx.query("INSERT INTO t VALUES (1)").run());
  const closing = file.close();
  let isClosed = false;
  void closing.then(() => {
    isClosed = true;
  });
  expect(await engine.syncCommits()).toEqual([]);
  expect(isClosed).toBe(true);
  await closing;
  await engine.stop();
});
