import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { defineConfig } from "./define.ts";

test("[CF40] defineConfig returns the same object", () => {
  const config = { databases: { shared: { tables: { posts: { access: { read: () => true } } } } } };
  expect(defineConfig(config) as unknown).toBe(config);
});

test.each([
  ["[CF40]", "define-config.ts"],
  ["[TG20]", "triggers.ts"],
  ["[JB24]", "jobs.ts"],
  ["[CF200]", "lookups.ts"],
  ["[CF201]", "lookups.ts"],
  ["[CF202]", "lookups.ts"],
  ["[FN30]", "routes.ts"],
])("%s tests/types/%s, which tests the inference, is checked by tsc", async (rule, name) => {
  const root = resolve(import.meta.dir, "../../..");
  const { include } = await Bun.file(resolve(root, "tsconfig.json")).json();
  expect(include).toContain("tests");
  expect(await Bun.file(resolve(root, `tests/types/${name}`)).text()).toContain(rule);
});
