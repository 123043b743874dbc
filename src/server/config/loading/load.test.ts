import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../../tests/support/index.ts";
import * as platformModule from "../../../index.ts";
import { loadConfig } from "./load.ts";

test("[CF100] a config that never finishes loading is refused, and a slow one is loaded", async () => {
  const directory = temporaryDirectory();
  const stuck = join(directory, "stuck.config.ts");
  writeFileSync(stuck, "await new Promise(() => {});\nexport default {};\n");
  await expect(loadConfig(stuck, platformModule, 100)).rejects.toThrow(`${stuck} is not loaded after 100 ms`);
  const slow = join(directory, "slow.config.ts");
  writeFileSync(slow, "await Bun.sleep(100);\nexport default { kv: { settings: {} } };\n");
  expect((await loadConfig(slow, platformModule)).config).toEqual({ kv: { settings: {} } });
});

test("[CF100] all missing files are named, also those that imported files import", async () => {
  const directory = temporaryDirectory();
  const config = join(directory, "platform.config.ts");
  writeFileSync(
    config,
    'import "./first.ts";\nimport "./rules.ts";\nimport { a } from "./second.ts";\nexport default { a };',
  );
  writeFileSync(join(directory, "rules.ts"), 'import "./third.ts";\nimport type { T } from "./types.ts";');
  const error = await loadConfig(config, platformModule).catch((cause: unknown) => String(cause));
  for (const name of ["first", "second", "third"]) expect(error).toContain(`Cannot find module './${name}.ts' from`);
  expect(error).not.toContain("types.ts");
});
