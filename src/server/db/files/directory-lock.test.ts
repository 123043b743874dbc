import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockDirectory } from "./directory-lock.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lock-"));
});

afterEach(() => rmSync(directory, { recursive: true }));

const HOLDER_SOURCE = `
import { lockDirectory } from ${JSON.stringify(join(import.meta.dir, "directory-lock.ts"))};
globalThis.lock = lockDirectory(process.argv[1]);
process.stdout.write("locked\\n");
setInterval(() => {}, 1000);`;

test("[DB30] a directory has one holder, in this process and in another, and is free after release", () => {
  const lock = lockDirectory(directory);
  expect(() => lockDirectory(directory)).toThrow(`The data directory ${directory} is in use by another process`);
  lock.release();
  lockDirectory(directory).release();
});

test("[DB30] the lock ends with its process, also if that is killed", async () => {
  const holder = Bun.spawn([process.execPath, "-e", HOLDER_SOURCE, directory], { stdout: "pipe", stderr: "inherit" });
  const { value } = await holder.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("locked\n");
  expect(() => lockDirectory(directory)).toThrow("in use by another process");
  holder.kill("SIGKILL");
  await holder.exited;
  lockDirectory(directory).release();
});

test("[DB30] a missing directory is an error that names the lock's path", () => {
  const missing = join(directory, "nowhere");
  expect(() => lockDirectory(missing)).toThrow(join(missing, "platform.lock"));
});
