import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../../../../tests/support/platform.ts";
import { holdRemovals, RemovalHold } from "./removal-hold.ts";

test("[BK320] a backup waits for the moment in which a server looks whether one has begun", async () => {
  const directory = temporaryDirectory();
  const removals = new RemovalHold(directory);
  const program = `
    const { Database } = require("bun:sqlite");
    const sqlite = new Database(${JSON.stringify(join(directory, "backup.lock"))}, { readwrite: true });
    sqlite.run("BEGIN EXCLUSIVE");
    console.log("locked");
    setTimeout(() => sqlite.run("ROLLBACK"), 200);
  `;
  await using server = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "inherit" });
  await server.stdout.getReader().read();
  const hold = holdRemovals(directory);
  expect(removals.isHeld()).toBe(true);
  hold.release();
  expect(removals.isHeld()).toBe(false);
  removals.close();
});
