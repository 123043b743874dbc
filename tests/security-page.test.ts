import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

// docs/security.md says which attacks are tried: each test that it names is there.

const root = resolve(import.meta.dir, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** Returns the names of every `test`, those of `test.each([…])(…)` too; of a template, its text. */
const names = [...new Bun.Glob("{src,tests}/**/*.test.ts").scanSync({ cwd: root })].flatMap((path) =>
  [
    ...read(path).matchAll(
      /(?:\b(?:test|browserTest)(?:\.\w+)*(?:\([^()]*\))?|\](?: as const)?\))\(\s*(?:"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g,
    ),
  ].map(([, plain, template]) => plain ?? template ?? ""),
);

test("every test that docs/security.md names exists", () => {
  const rows = read("docs/security.md")
    .split("\n")
    .filter((line) => /^\| .*\[[A-Z]{2,3}\d+/.test(line));
  const quoted = rows.map((row) => ({
    row,
    tests: [...row.matchAll(/`(\[[A-Z]{2,3}\d+[^`]*)`/g)].map(([, name = ""]) => name),
  }));
  expect(quoted.length).toBeGreaterThan(40);
  expect(quoted.filter(({ tests }) => tests.length === 0).map(({ row }) => row)).toEqual([]);
  const missing = quoted.flatMap(({ tests }) =>
    tests.filter((name) => !names.some((one) => one.startsWith(name.trim()))),
  );
  expect(missing).toEqual([]);
});
