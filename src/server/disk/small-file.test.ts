import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../tests/support/index.ts";
import { removeLeftovers, replaceSmallFile } from "./small-file.ts";

test("a small file is replaced atomically, readable by its owner only, and leaves no other file", () => {
  const directory = temporaryDirectory();
  const path = join(directory, "secret");
  // Left by a crash of a process with the same id: longer, and readable by others.
  writeFileSync(`${path}.${process.pid}.new`, "what was left by a crash", { mode: 0o644 });
  for (const text of ["first", "second", ""]) {
    replaceSmallFile(path, text);
    expect(readFileSync(path, "utf8")).toBe(text);
    if (process.platform !== "win32") expect(statSync(path).mode & 0o777).toBe(0o600);
  }
  expect(readdirSync(directory)).toEqual(["secret"]);
});

test("a file that cannot be replaced leaves nothing beside it", () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, "secret/in the way"), { recursive: true });
  expect(() => replaceSmallFile(join(directory, "secret"), "text")).toThrow();
  expect(readdirSync(directory)).toEqual(["secret"]);
});

test("a directory that does not exist is an error, and nothing is written", () => {
  const directory = temporaryDirectory();
  expect(() => replaceSmallFile(join(directory, "missing/secret"), "text")).toThrow("ENOENT");
  expect(readdirSync(directory)).toEqual([]);
});

test("what a killed process has left is removed, and not what another one writes now", async () => {
  const directory = temporaryDirectory();
  const ended = Bun.spawn(["true"]);
  await ended.exited;
  const names = (pid: number) => `secrets.json.${pid}.new`;
  const kept = [names(process.ppid), "secrets.json", "secrets.json.new", "a.12.newer"];
  for (const name of [...kept, names(ended.pid), names(process.pid)]) writeFileSync(join(directory, name), "");
  removeLeftovers(directory);
  expect(readdirSync(directory).sort()).toEqual(kept.sort());
  removeLeftovers(join(directory, "missing"));
});
