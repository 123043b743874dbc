import { expect, test } from "bun:test";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory, testPlatform } from "../../support/index.ts";
import { runCommand } from "../backup/backup-support.ts";
import { untilWhole } from "../backup/continuous-support.ts";

const configTo = (place: string) => `{
  databases: { shared: { tables: { notes: { schema: { text: { type: "string" } } } } } },
  storage: { buckets: { photos: {} } },
  backups: { continuous: { to: { folder: ${JSON.stringify(place)} }, everyMs: 250, verify: false } },
}`;

test("[CL445] doctor --config reads all that the newest moment needs of the continuous backup, and names what is missing", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await testPlatform({ config: configTo(place) });
  await untilWhole(place);
  await platform.service.post("/api/db/shared/tables/notes", { text: "a" });
  const form = new FormData();
  form.set("file", new File(["hello"], "a.txt"));
  form.set("key", "a.txt");
  const headers = { "x-platform-service-key": platform.serviceKey };
  const uploaded = await fetch(`${platform.url}/api/storage/photos/upload`, { method: "POST", body: form, headers });
  expect(uploaded.status).toBe(201);
  await platform.kill("SIGTERM");
  const file = join(temporaryDirectory(), "platform.config.ts");
  writeFileSync(file, `import { defineConfig } from "platform";\nexport default defineConfig(${configTo(place)});\n`);
  const look = async () => {
    const { code, stdout } = await runCommand(["doctor", "--data", platform.dataDirectory, "--config", file, "--json"]);
    return { code, found: JSON.parse(stdout).checks.continuous };
  };
  const healthy = await look();
  expect(healthy).toMatchObject({ code: 0, found: { ok: true, problems: [], gaps: 0 } });
  rmSync(join(place, "contents"), { recursive: true });
  expect(await look()).toMatchObject({ code: 1, found: { ok: false, problems: [expect.stringContaining("missing")] } });
  const [segment = ""] = readdirSync(join(place, "segments")).sort();
  rmSync(join(place, "segments", segment));
  expect(await look()).toMatchObject({ code: 1, found: { ok: false, problems: [expect.stringContaining(segment)] } });
  await platform.stop();
});
