import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../../tests/support/index.ts";
import { objectPath } from "../../areas/backup/layout.ts";
import { checkStorage } from "./orphans.ts";

const FILES = 2_000;
const idOf = (index: number): string => `00000000-0000-7000-8000-${index.toString(16).padStart(12, "0")}`;

/** Deletes like a server, without its pause: first the records of files, the last ones first, and then their contents. */
const DELETING = `
  import { Database } from "bun:sqlite";
  import { unlinkSync } from "node:fs";
  const db = new Database("system.db");
  db.run("PRAGMA busy_timeout = 5000");
  const remove = db.prepare('DELETE FROM storage_objects WHERE "fileId" = ?');
  for (const [fileId, path] of JSON.parse(await Bun.stdin.text())) {
    remove.run(fileId);
    unlinkSync(path);
  }
`;

test("[CL211] files that a running server deletes meanwhile are not missing, and others are", async () => {
  const dataDirectory = temporaryDirectory();
  const db = new Database(join(dataDirectory, "system.db"));
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = OFF");
  db.run(`CREATE TABLE storage_parts ("fileId" TEXT)`);
  db.run(`CREATE TABLE storage_objects (bucket TEXT, key TEXT PRIMARY KEY, "fileId" TEXT UNIQUE)`);
  db.run(`CREATE TABLE storage_claims (bucket TEXT, "fileId" TEXT PRIMARY KEY)`);
  const insert = db.prepare("INSERT INTO storage_objects VALUES ('files', ?, ?)");
  const made: [fileId: string, path: string][] = [];
  db.transaction(() => {
    for (let index = 0; index < FILES; index++) {
      const path = objectPath("objects", idOf(index));
      mkdirSync(join(dataDirectory, path, ".."), { recursive: true });
      writeFileSync(join(dataDirectory, path), "");
      insert.run(`key ${index}`, idOf(index));
      if (index > 0) made.push([idOf(index), path]);
    }
  })();
  const deleting = Bun.spawn([process.execPath, "-e", DELETING], {
    cwd: dataDirectory,
    stdin: Buffer.from(JSON.stringify(made.reverse())),
  });
  const found: string[] = [];
  while (deleting.exitCode === null) {
    found.push(...checkStorage({ dataDirectory, isRunning: true }).problems);
    await Bun.sleep(1);
  }
  expect([deleting.exitCode, found]).toEqual([0, []]);
  insert.run("lost", idOf(FILES));
  expect(checkStorage({ dataDirectory, isRunning: true }).problems).toEqual(["the content of files/lost is missing"]);
  db.close();
});
