import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, temporaryDirectory, testPlatform } from "../support/index.ts";
import { preloaded } from "../support/preloaded.ts";

const directory = temporaryDirectory();
const trigger = join(directory, "fail");
const library = preloaded("failing-disk.c");
if (library === null) console.warn("no failing disk is tested: there is no C compiler here, or no Linux");

describe.if(library !== null)("a disk that fails to sync", () => {
  let platform: TestPlatform;
  const notes = "/api/db/shared/tables/notes";
  const kv = (body: JsonValue) => platform.service.post<ErrorAnswer>("/api/kv/cache", body);

  beforeAll(async () => {
    platform = await testPlatform({
      config: `{
        databases: {
          shared: { tables: { notes: { schema: { text: { type: "text" } }, fts: ["text"], access: { read: true } } } },
          other: { tables: { notes: {} } },
          tenants: { instance: true, tables: { lines: {} } },
        },
        kv: { cache: {} },
        storage: { buckets: { files: {} } },
      }`,
      env: { LD_PRELOAD: library ?? "", FAILING_SYNC_SWITCH: trigger, FAILING_SYNC_NAME: "-wal" },
    });
    await platform.service.post(notes, { id: "before", text: "a word" });
    await platform.service.post("/api/db/tenants/one/tables/lines", { id: "before" });
    await kv({ action: "set", key: "a", value: 1 });
  });
  afterAll(() => platform.stop());

  test("[DB7] a database whose sync failed answers 503 to everything until the restart, and others go on", async () => {
    writeFileSync(trigger, "");
    const line = "/api/db/tenants/one/tables/lines";
    const writes = [
      await platform.service.post<ErrorAnswer>(notes, { id: "lost", text: "a word" }),
      await platform.service.post<ErrorAnswer>(line, { id: "lost" }),
      await kv({ action: "set", key: "a", value: 2 }),
    ];
    rmSync(trigger);
    const filter = encodeURIComponent('[["text","contains","w"]]');
    const reads = [
      ...[`${notes}/before`, notes, `${notes}/count`, `${notes}?filter=${filter}`, `${notes}/search?q=word`],
      ...[line, `${line}/before`, `${line}/count`],
    ];
    const answers = [
      ...writes,
      ...(await Promise.all(reads.map((path) => platform.service.get<ErrorAnswer>(path)))),
      await platform.service.patch<ErrorAnswer>(`${notes}/before`, { text: "another" }),
      await kv({ action: "get", key: "a" }),
      await kv({ action: "list" }),
    ];
    for (const [index, { status, body }] of answers.entries()) {
      expect([index, status, body.message]).toEqual([index, 503, expect.stringContaining("has been restarted")]);
    }
    expect((await platform.service.post("/api/db/other/tables/notes", { id: "x" })).status).toBe(201);
    expect((await platform.service.post("/api/db/tenants/two/tables/lines", { id: "x" })).status).toBe(201);
    await platform.restart();
    expect((await platform.service.get(`${notes}/before`)).status).toBe(200);
    expect((await platform.service.get(`${line}/before`)).status).toBe(200);
    expect((await platform.service.post(notes, { id: "after", text: "a word" })).status).toBe(201);
    expect((await kv({ action: "set", key: "a", value: 3 })).status).toBe(200);
  });

  test("[ST80] a file that was to be replaced while the sync of its record failed is there after the restart, in one version", async () => {
    const upload = (text: string) => {
      const form = new FormData();
      form.append("file", new Blob([text]), "file");
      form.append("key", "kept");
      return platform.service.fetch("/api/storage/files/upload", { method: "POST", body: form });
    };
    expect((await upload("the first version")).status).toBe(201);
    writeFileSync(trigger, "");
    expect((await upload("another version")).status).toBe(503);
    rmSync(trigger);
    await platform.restart();
    const stored = await platform.service.fetch("/api/storage/files/kept");
    expect([stored.status, ["the first version", "another version"].includes(await stored.text())]).toEqual([
      200,
      true,
    ]);
  });
});
