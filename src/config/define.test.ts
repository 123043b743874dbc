import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { defineConfig } from "./define.ts";

test("[CF40] defineConfig returns the same object", () => {
  const config = { databases: { shared: { tables: { posts: { access: { read: () => true } } } } } };
  expect(defineConfig(config) as unknown).toBe(config);
});

test("[CF40] tests/types/define-config.ts, which tests the inference, is checked by tsc", async () => {
  const root = resolve(import.meta.dir, "../..");
  const { include } = await Bun.file(resolve(root, "tsconfig.json")).json();
  expect(include).toContain("tests");
  expect(await Bun.file(resolve(root, "tests/types/define-config.ts")).text()).toContain("[CF40]");
});
