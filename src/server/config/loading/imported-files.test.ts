import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { importedFiles } from "./imported-files.ts";

function withFiles(files: Record<string, string>, look: (root: string) => void): void {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "platform-imports-")));
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(root, name, ".."), { recursive: true });
      writeFileSync(join(root, name), text);
    }
    look(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

test("[CF23] the config and what it imports by path, once each, also in a circle", () => {
  const files = {
    "platform.config.ts": 'import { a } from "./a"; import p from "pkg"; import "platform"; export default a;',
    "a.ts": 'import limits from "./lib/limits.json"; export { b } from "./lib/b.ts"; export const a = limits;',
    "lib/b.ts": 'import "../a.ts"; export const b = await import("./c.ts");',
    "lib/c.ts": "export const c = 1;",
    "lib/limits.json": "{}",
    "unrelated.ts": "",
    "node_modules/pkg/index.js": "",
  };
  withFiles(files, (root) => {
    const found = importedFiles(join(root, "platform.config.ts"));
    expect(found.sort()).toEqual(
      ["a.ts", "lib/b.ts", "lib/c.ts", "lib/limits.json", "platform.config.ts"].map((name) => join(root, name)),
    );
  });
});

test("[CF23] a broken or missing file is in the list without imports", () => {
  withFiles({ "platform.config.ts": 'import "./b.ts"', "b.ts": "export const = ;" }, (root) => {
    expect(importedFiles(join(root, "platform.config.ts"))).toEqual([
      join(root, "platform.config.ts"),
      join(root, "b.ts"),
    ]);
    expect(importedFiles(join(root, "none.ts"))).toEqual([join(root, "none.ts")]);
  });
});
