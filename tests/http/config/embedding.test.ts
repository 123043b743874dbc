import { expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, createPlatform, defineConfig } from "platform";
import { temporaryDirectory } from "../../support/index.ts";

const config = defineConfig({
  databases: {
    shared: { tables: { notes: { schema: { text: { type: "text", required: true } }, access: { read: true } } } },
  },
});

test("[CF50] createPlatform serves through fetch, listen and app", async () => {
  const platform = await createPlatform(config, {
    data: join(temporaryDirectory(), "data"),
    serviceKey: "embedder-key-0123456789",
  });
  try {
    expect(platform.serviceKey).toBe("embedder-key-0123456789");
    const note = await platform.app.db("shared").table("notes").insert({ text: "from inside" });
    const { url } = await platform.listen({ port: 0 });
    const path = `/api/db/shared/tables/notes/${note["id"]}`;
    const overNetwork = await fetch(`${url}${path}`);
    const direct = await platform.fetch(new Request(`http://localhost${path}`));
    expect([await overNetwork.json(), await direct.json()]).toEqual([note, note]);
  } finally {
    await platform.stop();
  }
});

test("[CF50] it checks the config, keeps generated secrets, and locks its directory until it stops", async () => {
  const data = join(temporaryDirectory(), "data");
  // What a program without types could pass.
  const broken: unknown = { api: { docs: "yes" } };
  await expect(createPlatform(broken as typeof config, { data })).rejects.toThrow(ConfigError);
  await expect(createPlatform(config, { data, jwtSecret: "short" })).rejects.toThrow("at least 32 bytes");

  const first = await createPlatform(config, { data });
  await expect(createPlatform(config, { data })).rejects.toThrow("in use");
  await first.stop();
  const second = await createPlatform(config, { data });
  await second.stop();
  expect(second.serviceKey).toBe(first.serviceKey);
});

test("[CF50] a start that fails, and a stop, leave no file open and no lock behind", async () => {
  const data = join(temporaryDirectory(), "data");
  const fcm = { projectId: "p", serviceAccount: join(data, "missing.json") };
  await expect(createPlatform({ ...config, push: { fcm } }, { data })).rejects.toThrow("missing.json");
  expect(openFiles(data)).toEqual([]);
  const platform = await createPlatform({ ...config, kv: { cache: {} } }, { data });
  await platform.stop();
  expect(openFiles(data)).toEqual([]);
});

/** Paths below `directory` that this process has open. */
function openFiles(directory: string): string[] {
  const paths = readdirSync("/proc/self/fd").map((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      // The descriptor that the directory was read with.
      return "";
    }
  });
  return paths.filter((path) => path.startsWith(directory));
}
