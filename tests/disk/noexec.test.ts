import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { getLoadablePath } from "sqlite-vec";
import { placeExtension } from "../../src/server/db/vectors/extension.ts";
import { loadVectorExtension } from "../../src/server/db/vectors/load.ts";
import { temporaryDirectory } from "../support/index.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const disk = mountSmallDisk(16);
afterAll(() => disk?.unmount());
const directory = disk?.directory ?? "";
const isMounted = disk !== null && Bun.spawnSync(["mount", "-o", "remount,noexec", directory]).success;
if (!isMounted) console.warn("no file system without exec is tested: this process may not mount one");

const vectorExtension = () => ({ name: "vec0.so", content: readFileSync(getLoadablePath()) });

test.if(isMounted)(
  "[VZ101] on a data directory mounted noexec the library is loaded from the directory for temporary files",
  () => {
    const fallback = temporaryDirectory();
    const placed = placeExtension({ ...vectorExtension(), directory, fallback });
    expect(placed.path.startsWith(fallback)).toBe(true);
    const sqlite = new Database(":memory:");
    loadVectorExtension(sqlite, placed.path);
    expect(sqlite.query("SELECT vec_version() LIKE 'v%' AS ok").get()).toEqual({ ok: 1 });
    sqlite.close();
    placed.remove();
    expect(readdirSync(fallback)).toEqual([]);
  },
);

test.if(isMounted)("[VZ101] if neither directory allows it, the message names both and says what to do", () => {
  expect(() => placeExtension({ ...vectorExtension(), directory, fallback: directory })).toThrow(
    /neither .+ nor .+ noexec .+ TMPDIR/,
  );
  expect(readdirSync(directory).filter((name) => name.startsWith("platform-vec"))).toEqual([]);
});

test("[VZ101] if the data directory allows it, the copy is made once and stays there", () => {
  const own = temporaryDirectory();
  for (let start = 0; start < 2; start += 1) {
    const placed = placeExtension({ ...vectorExtension(), directory: own, fallback: "/nowhere" });
    expect(placed.path).toBe(`${own}/vec0.so`);
    placed.remove();
    expect(existsSync(placed.path)).toBe(true);
  }
});

test.if(disk !== null)("[VZ101] on a full disk the message names the file, and nothing is left of the copy", () => {
  disk?.fill();
  expect(() => placeExtension({ ...vectorExtension(), name: "other.so", directory, fallback: directory })).toThrow(
    /could not be written to .+other\.so: ENOSPC/,
  );
  expect(readdirSync(directory).filter((name) => name.startsWith("other"))).toEqual([]);
  disk?.free();
});
