import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory, testPlatform } from "../../support/index.ts";
import { type RecordFile, sendForm, textOf } from "../tables/tables-files-support.ts";
import { runCommand } from "./backup-support.ts";

const CONFIG = `{
  storage: { buckets: { files: {} } },
  databases: { shared: { tables: { docs: {
    schema: { file: { type: "file", bucket: "files" } },
    access: { read: true, insert: true, delete: true },
  } } } },
}`;
const DOCS = "/api/db/shared/tables/docs";

interface Doc {
  id: string;
  file: RecordFile | null;
}

test("[BK320] a backup that is made while records come and go has the files of all that it has", async () => {
  const platform = await testPlatform({ config: CONFIG });
  let isRunning = true;
  const ids: string[] = [];
  let deleted = 0;
  const insert = async (): Promise<void> => {
    const content = crypto.randomUUID();
    const { body } = await sendForm<Doc>(platform, DOCS, {
      record: { id: content },
      files: [{ field: "file", content }],
    });
    ids.push(body.id);
  };
  for (let count = 0; count < 20; count++) await insert();
  const change = async (): Promise<void> => {
    while (isRunning) {
      await insert();
      const id = ids.shift();
      expect((await platform.delete(`${DOCS}/${id}`)).status).toBe(200);
      deleted++;
    }
  };
  const changing = [change(), change()];
  const archive = join(temporaryDirectory(), "backup.tar");
  const made = await runCommand(["backup", archive, "--data", platform.dataDirectory]);
  isRunning = false;
  await Promise.all(changing);
  expect(made).toMatchObject({ code: 0 });
  expect(deleted).toBeGreaterThan(2);

  const directory = join(temporaryDirectory(), "restored");
  expect(await runCommand(["restore", archive, "--data", directory])).toMatchObject({ code: 0 });
  const restored = await testPlatform({ config: CONFIG, args: ["--data", directory] });
  const { body } = await restored.get<{ items: Doc[] }>(`${DOCS}?limit=1000`);
  expect(body.items.length).toBeGreaterThan(0);
  for (const { id, file } of body.items) expect([id, await textOf(restored, file?.url ?? "")]).toEqual([id, id]);
  await Promise.all([platform.stop(), restored.stop()]);
}, 60_000);
