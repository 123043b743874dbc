import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SERVICE_KEY, type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { runCommand } from "../backup/backup-support.ts";
import { type RecordFile, sendForm, textOf } from "./tables-files-support.ts";

const table = `{
  schema: {
    title: { type: "text" },
    cover: { type: "file", bucket: "files" },
    all: { type: "file", bucket: "files", many: 3 },
  },
  access: { read: true, insert: true },
}`;
const CONFIG = `{
  api: { schemaEndpoint: true },
  storage: { buckets: { files: {} } },
  databases: { shared: { tables: { docs: ${table}, copies: ${table} } } },
}`;

interface Doc {
  id: string;
  title: string;
  cover: RecordFile | null;
  all: RecordFile[];
}

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const command = (...args: string[]) => runCommand([...args, "--url", platform.url, "--key", SERVICE_KEY]);

test("[TB735] files are exported with their records, and imported", async () => {
  const files = [
    { field: "cover", content: "cover", name: "ä.txt" },
    { field: "all", content: "one", name: "1.txt" },
    { field: "all", content: "", name: "2.txt" },
  ];
  const docs = "/api/db/shared/tables/docs";
  const { body: doc } = await sendForm<Doc>(platform, docs, { record: { id: "a", title: "with" }, files });
  await platform.post(docs, { id: "b", title: "without" });
  const directory = temporaryDirectory();
  const [file, folder] = [join(directory, "docs.ndjson"), join(directory, "files")];
  expect(await command("export", "shared/docs", file, "--files", folder)).toMatchObject({ code: 0 });
  expect(readdirSync(folder).toSorted()).toEqual([doc.cover, ...doc.all].flatMap((one) => one?.id ?? []).toSorted());

  const plain = await command("import", "shared/copies", file);
  expect(plain.code).not.toBe(0);
  expect(plain.stderr).toContain("takes a file of a form");
  for (const more of [[], ["--upsert"]]) {
    expect(await command("import", "shared/copies", file, "--files", folder, ...more)).toMatchObject({ code: 0 });
    const { body } = await platform.get<{ items: Doc[] }>("/api/db/shared/tables/copies");
    expect(body.items.map(({ title }) => title)).toEqual(["with", "without"]);
    const [copy] = body.items;
    expect([copy?.cover?.name, copy?.all.map(({ name }) => name)]).toEqual(["ä.txt", ["1.txt", "2.txt"]]);
    expect(await textOf(platform, copy?.cover?.url ?? "")).toBe("cover");
    expect(await Promise.all((copy?.all ?? []).map(({ url }) => textOf(platform, url)))).toEqual(["one", ""]);
  }

  rmSync(join(folder, doc.cover?.id ?? ""));
  const missing = await command("import", "shared/copies", file, "--files", folder, "--upsert");
  expect(missing.code).not.toBe(0);
  expect(missing.stderr).toContain("line 1: the file");
}, 60_000);
