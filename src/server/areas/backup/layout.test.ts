import { expect, test } from "bun:test";
import { isKept, kindOf, objectPath } from "./layout.ts";

const ID = "0193b4c2-1111-7222-8333-4444555566ab";

test("[BK3] databases, contents of files, secrets and queued mail are backed up", () => {
  const databases = [
    "system.db",
    "rooms.db",
    "analytics.db",
    "jobs.db",
    "databases/shared.db",
    "databases/clubs/berlin-1.db",
  ];
  for (const path of [...databases, "kv/cache.db", "d1/reports.db", "vectorize/words.db"]) {
    expect([path, kindOf(path)]).toEqual([path, "database"]);
  }
  expect(kindOf(objectPath("objects", ID))).toBe("object");
  expect(kindOf(objectPath("parts", ID))).toBe("object");
  expect(["secrets.json", `outbox/${ID}.json`].map(kindOf)).toEqual(["plain", "plain"]);
});

test("[BK3] files that the server recreates are omitted, and unknown files are named", () => {
  const passing = [
    ...["platform.lock", "system.db-wal", "databases/clubs/a.db-shm", "databases/clubs/a.db.new", "vectorize/vec0.so"],
    ...["storage/thumbs/ab", `storage/objects/incoming/${ID}`, "secrets.json.12.new", "restore.partial/system.db"],
    ...["admin-links/address", "admin-links/ab12", "tls/certificate.pem", "backups/platform-x.tar.zst"],
    ...["vectorize/vec0-5sd1m2xq.so", "vectorize/vec0-5sd1m2xq.dylib", "vectorize/vec0-5sd1m2xq.so.12.new"],
    ...["owner-id", "owner-id.12.new", "system.db.v11", "databases/clubs/a.db.v1", "kv/cache.db.v1.new-wal"],
  ];
  for (const path of passing) expect([path, kindOf(path)]).toEqual([path, "passing"]);
  for (const path of ["notes.txt", "other.db", "databases/a/b/c.db", "kv/.db", "system.db.v", "storage/objects/ab"]) {
    expect([path, kindOf(path)]).toEqual([path, "stranger"]);
  }
});

test("[BK13] no path that leaves the data directory has a known form", () => {
  const hostile = [
    ...["/system.db", "../system.db", "databases/../system.db", "databases/./a.db", "databases//a.db", "./system.db"],
    ...["C:/system.db", "databases\\a.db", "kv/a.db\0", "kv/a.db\n", "kv/../../a.db", "databases/a/..db", "SYSTEM.DB"],
    ...[`storage/objects/00/${ID}`, `storage/objects/ab/../${ID}`, `storage/objects/ab/${ID}/x`, "secrets.json/x", ""],
  ];
  for (const path of hostile) expect([path, isKept(path)]).toEqual([path, false]);
});
