import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { extensionFile } from "../../db/vectors/extension.ts";
import { loadVectorExtension } from "../../db/vectors/load.ts";
import { productRows } from "./search-job.ts";
import { migrateIndex } from "./store.ts";

const bytes = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);

test("[VZ13] vectors of an index made with a plain table for products are found in chunks", async () => {
  const sqlite = new Database(":memory:");
  loadVectorExtension(sqlite, (await extensionFile("")).path);
  sqlite.run("CREATE TABLE index_definition (dimensions INTEGER NOT NULL, metric TEXT NOT NULL) STRICT");
  sqlite.run("INSERT INTO index_definition VALUES (2, 'dot-product')");
  sqlite.run("CREATE TABLE items (rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, metadata TEXT NOT NULL) STRICT");
  sqlite.run("CREATE TABLE vectors (rowid INTEGER PRIMARY KEY, embedding BLOB NOT NULL, length REAL NOT NULL) STRICT");
  for (let number = 1; number <= 3_000; number++) {
    sqlite.run("INSERT INTO items VALUES (?, ?, '{}')", [number * 7, `${number}`]);
    sqlite.run("INSERT INTO vectors VALUES (?, ?, 0)", [number * 7, bytes(number, -1)]);
  }
  const index = { name: "old", dimensions: 2, metric: "dot-product" } as const;
  for (let start = 0; start < 2; start++) migrateIndex(sqlite, index);
  const sql =
    "SELECT rowid, id, metadata, NULL FROM items WHERE rowid IN (SELECT value FROM json_each(?1)) ORDER BY id";
  const found = productRows(sqlite, {
    shape: "products",
    sql,
    vector: Float32Array.of(2, 1),
    topK: 2,
    matching: { sql: "SELECT rowid FROM items WHERE rowid <> ?1", params: [2_999 * 7] },
  });
  expect(found.map(([id, score]) => [id, score])).toEqual([
    ["3000", 5_999],
    ["2998", 5_995],
  ]);
  expect(sqlite.query("SELECT count(*) FROM vectors").values()).toEqual([[3_000]]);
  expect(sqlite.query("SELECT name FROM sqlite_schema WHERE name = 'plain_vectors'").values()).toEqual([]);
  sqlite.close();
});
