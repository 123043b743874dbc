import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { AsyncLocalStorage } from "node:async_hooks";
import fs, { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testClock } from "../../../../tests/support/clock.ts";
import { countTurns } from "../../../../tests/support/event-loop.ts";
import { until } from "../../../../tests/support/index.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { TurnBudget } from "../../../kernel/time/turn-budget.ts";
import { createStorageEngine } from "../engine.ts";
import { boundsOf, DescriptorReserve } from "../files/descriptors.ts";
import { RESERVE_REFILL_MS } from "../limits.ts";
import { NO_ORIGIN, type Origin } from "../outbox/types.ts";
import type { Declaration } from "../schema/types.ts";
import type { DatabaseFile, StorageEngine } from "../types.ts";
import type { SyncFile } from "../writer/wal-sync.ts";
import { createInstanceFiles, type InstanceFiles } from "./instance-files.ts";

const OPEN_MAX = 8;
const idColumn = { name: "id", type: "TEXT" as const, notNull: true, unique: false, check: null, references: null };
const items = { name: "items", kind: "", columnKinds: {}, columns: [idColumn], indexes: [], fts: null, migrations: [] };
const declaration: Declaration = { tables: [items], options: {} };

let directory: string;
let engine: StorageEngine;
let instances: InstanceFiles;
let syncFile: SyncFile;
let announced: string[];
let onDelete: (instanceId: string) => void;

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "instances-")), "clubs");
  syncFile = fs.fdatasync;
  announced = [];
  onDelete = () => {};
  engine = createStorageEngine({ clock: systemClock, syncFile: (descriptor, done) => syncFile(descriptor, done) });
  instances = createInstanceFiles(engine, {
    directory,
    bounds: boundsOf(OPEN_MAX),
    declaration,
    onDelete: (instanceId) => onDelete(instanceId),
    onChange: (instanceId, groups) => announced.push(`${instanceId}: ${groups.flat().map((change) => change.id)}`),
  });
});

afterEach(async () => {
  await instances.close();
  await engine.stop();
  rmSync(join(directory, ".."), { recursive: true });
});

function use(instanceId: string): DatabaseFile {
  const file = instances.get(instanceId, { create: true });
  if (file === null) throw new Error("create gives a file");
  return file;
}

function insert(instanceId: string, id: string): Promise<void> {
  return use(instanceId).write((tx) => {
    tx.query("INSERT INTO items VALUES (?)").run(id);
    tx.change({ table: "items", id, before: null, after: { id } });
  });
}

const idsOf = (instanceId: string) => use(instanceId).query("SELECT id FROM items ORDER BY id").values().flat();

test("[DB26] an instance that was never written to does not exist, and reading does not create it", async () => {
  expect(instances.exists("red")).toBe(false);
  expect(instances.get("red", { create: false })).toBeNull();
  expect(fs.existsSync(directory)).toBe(false);
  use("red");
  expect(fs.existsSync(directory)).toBe(false);
  await insert("red", "a");
  expect(idsOf("red")).toEqual(["a"]);
  expect(instances.exists("red")).toBe(true);
  expect(instances.get("red", { create: false })).not.toBeNull();
});

test("[DB55] a write that fails or changes nothing creates no file, and does not affect the next one", async () => {
  const failing = use("red").write((tx) => {
    tx.query("INSERT INTO items VALUES ('a')").run();
    tx.change({ table: "items", id: "a", before: null, after: { id: "a" } });
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  const counted = await use("red").write((tx) => tx.query<{ n: number }>("SELECT count(*) AS n FROM items").get()?.n);
  expect(counted).toBe(0);
  expect(fs.existsSync(directory)).toBe(false);
  await Promise.all([insert("red", "a"), insert("red", "b")]);
  expect(idsOf("red")).toEqual(["a", "b"]);
  expect(announced).toEqual(["red: a,b"]);
});

test("[DB26] each instance has its own records, and its changes have its name", async () => {
  await Promise.all([insert("red", "a"), insert("blue", "b")]);
  expect([idsOf("red"), idsOf("blue")]).toEqual([["a"], ["b"]]);
  expect(announced.sort()).toEqual(["blue: b", "red: a"]);
  expect(use("red").rowCount("items")).toBe(1);
});

test("[DB26] a deletion that others fail to hear of ends with their error, and the instance may be created again", async () => {
  await insert("red", "r1");
  onDelete = () => {
    throw new Error("not heard");
  };
  await expect(instances.delete("red")).rejects.toThrow("not heard");
  expect(instances.exists("red")).toBe(false);
  expect(await instances.delete("red")).toBe(false);
  await insert("red", "r2");
  expect(idsOf("red")).toEqual(["r2"]);
});

test("[TB444] what was got before a deletion is refused from its beginning, and creates no instance", async () => {
  await insert("red", "r1");
  const before = use("red");
  const deletion = instances.delete("red");
  const late = before.write((tx) => tx.change({ table: "items", id: "r2", before: null, after: { id: "r2" } }));
  await expect(late).rejects.toThrow("was deleted");
  expect(await deletion).toBe(true);
  expect(instances.exists("red")).toBe(false);
});

test("[DB27] beyond openMax the files used longest ago are closed; a handle reopens its file", async () => {
  const kept = use("club 0");
  for (let n = 0; n < 30; n += 1) await insert(`club ${n}`, `item ${n}`);
  for (let turn = 0; turn < 500 && instances.size > OPEN_MAX; turn++) await Bun.sleep(10);
  expect(instances.size).toBeLessThanOrEqual(OPEN_MAX);
  expect(engine.openFiles).toBe(instances.size);
  expect(kept.query("SELECT id FROM items").values()).toEqual([["item 0"]]);
  for (let n = 0; n < 30; n += 1) expect(idsOf(`club ${n}`)).toEqual([`item ${n}`]);
});

test("[DB27] a file in constant use stays open", async () => {
  await insert("busy", "a");
  const { sqlite } = use("busy");
  for (let n = 0; n < 40; n += 1) {
    await insert(`club ${n}`, "x");
    use("busy").query("SELECT 1").get();
  }
  expect(use("busy").sqlite).toBe(sqlite);
});

test("[DB28] a file with a write under way is never closed", async () => {
  await insert("slow", "a");
  const { sqlite } = use("slow");
  const held: (() => void)[] = [];
  syncFile = (descriptor, done) => {
    held.push(() => fs.fdatasync(descriptor, done));
  };
  let isAnswered = false;
  const slow = insert("slow", "b").then(() => {
    isAnswered = true;
  });
  while (held.length === 0) await Bun.sleep(1);
  syncFile = fs.fdatasync;
  expect(held.length).toBe(1);
  for (let n = 0; n < 30; n += 1) await insert(`club ${n}`, "x");
  await Bun.sleep(200);
  expect(isAnswered).toBe(false);
  expect(use("slow").sqlite).toBe(sqlite);
  for (const release of held) release();
  await slow;
  expect(idsOf("slow")).toEqual(["a", "b"]);
});

test("[DB28] when more files have work under way than may be open, writes wait for room, and quick reads are 503", async () => {
  const held: (() => void)[] = [];
  syncFile = (descriptor, done) => {
    held.push(() => fs.fdatasync(descriptor, done));
  };
  const names = Array.from({ length: 150 }, (_, n) => `club ${n}`);
  const writes = names.map((name) => insert(name, "x"));
  const { openMax, overMax, closingMax } = boundsOf(OPEN_MAX);
  // Files are opened over several turns.
  await until("every place is taken", () => instances.size === openMax + overMax + closingMax);
  expect(() => use("one more").query("SELECT 1")).toThrow("Too many database instances");
  syncFile = fs.fdatasync;
  for (const release of held) release();
  await Promise.all(writes);
  for (const name of names) expect(idsOf(name)).toEqual(["x"]);
});

test("[DB104] while all files that may be open are in use, those who ask to read another one wait until it is open", async () => {
  const names = Array.from({ length: 60 }, (_, n) => `club ${n}`);
  for (const name of names) await insert(name, "x");
  const held: (() => void)[] = [];
  syncFile = (descriptor, done) => {
    held.push(() => fs.fdatasync(descriptor, done));
  };
  const writes = Array.from({ length: 60 }, (_, n) => insert(`busy ${n}`, "y"));
  await until("no other file can be opened", () => {
    try {
      return idsOf("club 0").length === 0;
    } catch {
      return true;
    }
  });
  let answered = 0;
  const reads = Promise.allSettled(
    names.map(async (name) => {
      await instances.ready(name);
      answered += 1;
      return idsOf(name);
    }),
  );
  expect(await instances.delete("club 1")).toBe(true);
  expect(answered).toBeLessThan(names.length - 1);
  syncFile = fs.fdatasync;
  for (const release of held) release();
  await Promise.all(writes);
  const results = (await reads).map((read) => (read.status === "fulfilled" ? read.value : String(read.reason)));
  expect(results).toEqual(names.map((name) => (name === "club 1" ? expect.stringContaining("was deleted") : ["x"])));
});

test("[DB105] all callers that wait for one file continue when it is opened, also if no other file is closed", async () => {
  const held: (() => void)[] = [];
  syncFile = (descriptor, done) => {
    held.push(() => fs.fdatasync(descriptor, done));
  };
  const others = Array.from({ length: 120 }, (_, n) => insert(`club ${n}`, "x"));
  await Bun.sleep(100);
  const writes = Array.from({ length: 300 }, (_, n) => insert("wanted", `item ${n}`));
  await Bun.sleep(100);
  syncFile = fs.fdatasync;
  for (const release of held) release();
  const answered = Promise.all([...others, ...writes]).then(() => "all are answered");
  expect(await Promise.race([answered, Bun.sleep(20_000)])).toBe("all are answered");
  expect(idsOf("wanted")).toHaveLength(300);
}, 60_000);

test("[DB105] hundreds of first writes at once make their files over many turns, in order", async () => {
  const many = createInstanceFiles(engine, { directory: join(directory, "many"), bounds: boundsOf(256), declaration });
  const written: number[] = [];
  const writes = Array.from({ length: 200 }, async (_, n) => {
    await many.get(`i${n}`, { create: true })?.write((tx) => {
      tx.query("INSERT INTO items VALUES ('a')").run();
      tx.change({ table: "items", id: "a", before: null, after: { id: "a" } });
    });
    written.push(n);
  });
  let largest = 0;
  for (let before = 0; many.size < 200; ) {
    await new Promise((resolve) => setImmediate(resolve));
    largest = Math.max(largest, many.size - before);
    before = many.size;
  }
  // Making all of them in one turn would block the event loop for a second.
  expect(largest).toBeLessThan(100);
  await Promise.all(writes);
  expect(written.length).toBe(200);
  await many.close();
});

test("[DB366] a first write asks the file system once in a turn whether its instance is there", async () => {
  const clubs = createInstanceFiles(engine, {
    directory: join(directory, "asked"),
    bounds: boundsOf(100),
    declaration,
  });
  try {
    expect(clubs.exists("other")).toBe(false);
    mkdirSync(join(directory, "asked"), { recursive: true });
    writeFileSync(join(directory, "asked", "other.db"), "");
    expect(clubs.exists("other")).toBe(false);
    await new Promise((resolve) => setImmediate(resolve));
    expect(clubs.exists("other")).toBe(true);
    // In the turn in which it is made, it is there.
    expect(clubs.exists("made")).toBe(false);
    const file = clubs.get("made", { create: true });
    await file?.write((tx) => {
      tx.query("INSERT INTO items VALUES ('a')").run();
      tx.change({ table: "items", id: "a", before: null, after: { id: "a" } });
    });
    expect(clubs.exists("made")).toBe(true);
    expect(await clubs.delete("made")).toBe(true);
    expect(clubs.exists("made")).toBe(false);
  } finally {
    await clubs.close();
  }
});

test("[DB105] first writes that wait for their files have the origin of who asked for them", async () => {
  const origins = new AsyncLocalStorage<Origin>();
  const many = createInstanceFiles(engine, {
    directory: join(directory, "many"),
    bounds: boundsOf(256),
    declaration,
    outbox: () => ({ origin: () => origins.getStore() ?? NO_ORIGIN, onWaiting() {} }),
  });
  const depths = await Promise.all(
    Array.from({ length: 100 }, (_, depth) =>
      origins.run({ depth, root: null }, async () => {
        const file = many.get(`i${depth}`, { create: true });
        return file?.write((tx) => {
          tx.change({ table: "items", id: "a", before: null, after: { id: "a" } });
          return tx.cause.depth;
        });
      }),
    ),
  );
  expect(depths).toEqual(Array.from({ length: 100 }, (_, depth) => depth));
  await many.close();
});

test("[DB105] using a file that is about to be closed delays nobody", async () => {
  const names = Array.from({ length: 40 }, (_, n) => `club ${n}`);
  for (const name of names) await insert(name, "x");
  const stop = Date.now() + 1_000;
  const readers = (async () => {
    // These reads keep the files that are being closed open.
    for (; Date.now() < stop; await Bun.sleep(1))
      for (const name of names)
        if (instances.exists(name))
          try {
            idsOf(name);
          } catch {}
  })();
  const writes = names.flatMap((name) => [1, 2, 3].map((n) => insert(name, `y${n}`)));
  expect(await Promise.race([Promise.all(writes).then(() => "done"), Bun.sleep(20_000)])).toBe("done");
  await readers;
}, 60_000);

test("[DB29] a file that another instance wrote under a name of the same letters is refused", async () => {
  await insert("Red", "a");
  await use("Red").close();
  // Simulates a file system that ignores case.
  fs.renameSync(join(directory, "Red.db"), join(directory, "red.db"));
  await expect(insert("red", "b")).rejects.toMatchObject({ status: 409 });
});

test("[DB27] closing leaves one file per instance, with everything in it", async () => {
  await Promise.all(Array.from({ length: 12 }, (_, n) => insert(`club ${n}`, "x")));
  await instances.close();
  expect(fs.readdirSync(directory).sort()).toEqual(Array.from({ length: 12 }, (_, n) => `club ${n}.db`).sort());
  expect(idsOf("club 7")).toEqual(["x"]);
});

test("[DB27] processes close an instance that is closed at once, and read nothing of it when it is created again", async () => {
  await instances.close();
  const bounds = { openMax: 1, overMax: 1, closingMax: 0 };
  instances = createInstanceFiles(engine, { directory, bounds, declaration });
  const read = () => use("red").read("SELECT id FROM items", []);
  await insert("red", "old");
  expect(await read()).toEqual([["old"]]);
  for (const other of ["green", "blue"]) await insert(other, "a");
  expect(engine.paths()).not.toContain(use("red").path);
  expect(await instances.delete("red")).toBe(true);
  await insert("red", "new");
  expect(await read()).toEqual([["new"]]);
});

test("[DB355] fewer descriptors than a file needs are a lack of them, whatever the error says; with enough, the error stays", () => {
  const cause = new Error("unable to open database file");
  const fail = () => {
    throw cause;
  };
  const reserve = new DescriptorReserve(64, testClock());
  const openSync = fs.openSync;
  let left = 3;
  const open = spyOn(fs, "openSync").mockImplementation((...args) => {
    if (left === 0) throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
    left -= 1;
    return openSync(...args);
  });
  try {
    expect(() => reserve.lend(fail)).toThrow(expect.objectContaining({ status: 503, cause }));
    left = 100;
    expect(() => reserve.lend(fail)).toThrow(cause);
  } finally {
    open.mockRestore();
    reserve.close();
  }
});

test("[DB103] however often the reserve is used while there are no descriptors, one timer refills it", () => {
  const clock = testClock();
  const shortage = Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
  const open = spyOn(fs, "openSync").mockImplementation(() => {
    throw shortage;
  });
  const reserve = new DescriptorReserve(1_000, clock);
  try {
    for (let use = 0; use < 5; use++) {
      expect(() =>
        reserve.lend(() => {
          throw shortage;
        }),
      ).toThrow("short of memory or of file descriptors");
    }
    expect(clock.waiting).toBe(1);
  } finally {
    open.mockRestore();
  }
  clock.advance(RESERVE_REFILL_MS);
  expect(clock.waiting).toBe(0);
  reserve.close();
});

test("[DB365] transactions of many files, and trials of first writes, share the time of a turn, and follow in order", async () => {
  let now = 0;
  // Each piece of work takes a millisecond: the clock is asked before and after it.
  const turns = new TurnBudget({ now: () => now++ });
  const busy = createStorageEngine({ clock: systemClock, turns });
  const ids = Array.from({ length: 40 }, (_, n) => `i${String(n).padStart(2, "0")}`);
  const loop = countTurns();
  let done: { turn: number; id: string }[] = [];
  const clubs = createInstanceFiles(busy, {
    directory: join(directory, "busy"),
    bounds: boundsOf(100),
    declaration,
    onCommit: (id) => done.push({ turn: loop.turn, id }),
  });
  const writeAll = (value: string, onRun: (id: string) => void) =>
    Promise.all(
      ids.map((id) =>
        clubs.get(id, { create: true })?.write((tx) => {
          onRun(id);
          tx.query("INSERT INTO items VALUES (?)").run(value);
          tx.change({ table: "items", id: value, before: null, after: { id: value } });
        }),
      ),
    );
  const mostInTurn = () =>
    Math.max(
      ...Map.groupBy(done, ({ turn }) => turn)
        .values()
        .map((all) => all.length),
    );
  const ran = new Set<string>();
  const tried: typeof done = [];
  await writeAll("1", (id) => {
    if (!ran.has(id)) tried.push({ turn: loop.turn, id });
    ran.add(id);
  });
  done = tried;
  // What counts turns is called among them, so that it sees two halves.
  expect(mostInTurn()).toBeLessThanOrEqual(8);
  done = [];
  await writeAll("2", () => {});
  expect(done.map(({ id }) => id)).toEqual(ids);
  expect(mostInTurn()).toBeLessThanOrEqual(8);
  loop.stop();
  await clubs.close();
  await busy.stop();
});
