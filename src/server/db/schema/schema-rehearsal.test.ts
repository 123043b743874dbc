import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../../tests/support/index.ts";
import { declaredMigration } from "./declared.ts";
import { rehearseFiles } from "./schema-rehearsal.ts";
import type { DeclaredColumn, DeclaredTable } from "./types.ts";

const column = (name: string): DeclaredColumn => ({
  name,
  type: "TEXT",
  notNull: name === "id",
  unique: false,
  check: null,
  references: null,
});
const posts = (columns: string[], migrations: DeclaredTable["migrations"] = []): DeclaredTable => ({
  name: "posts",
  kind: "schema",
  columnKinds: Object.fromEntries(["id", ...columns].map((name) => [name, "text"])),
  columns: ["id", ...columns].map(column),
  indexes: [],
  fts: null,
  migrations,
});

function rehearse(
  directory: string,
  table: DeclaredTable,
  { copyMaxBytes = 1024 * 1024, skipsWals = false }: { copyMaxBytes?: number; skipsWals?: boolean } = {},
) {
  const namespaces = [{ name: "shared", isDynamic: true, tables: [table] }];
  return Object.fromEntries(
    [...rehearseFiles({ directory, namespaces, copyMaxBytes, skipsWals })].map(({ instanceId, state }) => [
      instanceId,
      state,
    ]),
  );
}

test("[DB163] files with and without a WAL, damaged and large ones are tried, and not changed", () => {
  const directory = temporaryDirectory();
  const folder = join(directory, "shared");
  mkdirSync(folder);
  const open = (name: string) => {
    const sqlite = new Database(join(folder, name), { create: true });
    sqlite.run("PRAGMA journal_mode = WAL");
    declaredMigration([posts(["title"])])(sqlite);
    return sqlite;
  };
  open("empty.db").close();
  const closed = open("a name?.db");
  closed.run("INSERT INTO posts VALUES ('a', 'one')");
  closed.close();
  using inUse = open("in-use.db");
  inUse.run("INSERT INTO posts VALUES ('a', 'one')");
  writeFileSync(join(folder, "damaged.db"), "no database at all".repeat(100));
  const contents = () =>
    readdirSync(folder)
      .filter((name) => !name.endsWith("-shm"))
      .map((name) => [name, Bun.hash(readFileSync(join(folder, name)))]);
  const before = contents();
  const rename = { version: 1, description: "rename", up: "ALTER TABLE posts RENAME COLUMN title TO headline" };
  const broken = { version: 1, description: "broken", up: "UPDATE nowhere SET x = 1" };
  const damaged = { damaged: "untried" };
  const all = (state: string) => ({ "a name?": state, "in-use": state, empty: state, ...damaged });
  expect(rehearse(directory, posts(["title"]))).toEqual(all("fits"));
  expect(rehearse(directory, posts(["title", "text"]))).toEqual(all("fits"));
  expect(rehearse(directory, posts(["headline"]))).toEqual({ ...all("unfit"), empty: "fits" });
  expect(rehearse(directory, posts(["headline"], [rename]))).toEqual(all("fits"));
  expect(rehearse(directory, posts(["title"], [broken]))).toEqual(all("unfit"));
  // The file is too large to be copied.
  expect(rehearse(directory, posts(["title", "text"]), { copyMaxBytes: 1 })).toEqual(all("fits"));
  expect(rehearse(directory, posts(["headline"]), { copyMaxBytes: 1 })).toEqual({ ...all("unfit"), empty: "fits" });
  expect(rehearse(directory, posts(["title"], [broken]), { copyMaxBytes: 1 })).toEqual(all("untried"));
  // Beside a server, which has the file open.
  const { "in-use": _, ...others } = all("fits");
  expect(rehearse(directory, posts(["title"]), { skipsWals: true })).toEqual(others);
  expect(contents()).toEqual(before);
});
