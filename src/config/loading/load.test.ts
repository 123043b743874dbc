import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../tests/support/index.ts";
import * as platformModule from "../../index.ts";
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
