import { afterEach, beforeEach, expect, test } from "bun:test";
import fs, { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tablesLayout } from "../../../../schema/migrations/index.ts";
import { heapBytes } from "../../../../tests/support/heap.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import { createStorageEngine } from "../engine.ts";
import { WAITING_WRITES_MAX } from "../limits.ts";
import type { Change, OpenedFile, PreparedStatement, StorageEngine, Transaction } from "../types.ts";
import type { SyncFile } from "./wal-sync.ts";

/** Includes the table of row counts, like every file whose changes are announced. */
const CREATE_ITEMS = "CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY NOT NULL, v TEXT) STRICT";
const CREATE = [CREATE_ITEMS, ...tablesLayout.steps].join(";\n");

let directory: string;
let engine: StorageEngine;
let failures: unknown[];
let syncFile: SyncFile;
const announced: string[][] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "writer-"));
  failures = [];
  announced.length = 0;
  syncFile = fs.fdatasync;
  engine = createStorageEngine({
    clock: systemClock,
    onFailure: (_, cause) => failures.push(cause),
    syncFile: (descriptor, done) => syncFile(descriptor, done),
  });
});

afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

function open(name = "file"): OpenedFile {
  return engine.open(join(directory, `${name}.db`), {
    migrate: (sqlite) => sqlite.run(CREATE),
    onChange: (groups) => announced.push(groups.map((changes) => changes.map(({ id }) => id).join("+"))),
  });
}

const added = (id: string): Change => ({ table: "items", id, before: null, after: { id } });
const removed = (id: string): Change => ({ table: "items", id, before: { id }, after: null });

function insert(tx: Transaction, id: string): string {
  tx.query("INSERT INTO items (id) VALUES (?)").run(id);
  tx.change(added(id));
  return id;
}

function idsOf(file: OpenedFile): unknown[] {
  return file.query("SELECT id FROM items ORDER BY id").values().flat();
}

/** Delays every sync until it is released. */
function holdSyncs(): { count: () => number; release: (error?: Error) => void } {
  const held: { descriptor: number; done: (error: Error | null) => void }[] = [];
  let count = 0;
  syncFile = (descriptor, done) => {
    count += 1;
    held.push({ descriptor, done });
  };
  return {
    count: () => count,
    release: (error) => {
      for (const { descriptor, done } of held.splice(0)) {
        if (error === undefined) fs.fdatasync(descriptor, done);
        else done(error);
      }
    },
  };
}

test("[DB266] a commit asks for no sync, and keeps its place behind writes that wait for theirs", async () => {
  const file = open();
  await file.write((tx) => insert(tx, "first"));
  const syncs = holdSyncs();
  expect(await file.commit((tx) => insert(tx, "second"))).toBe("second");
  expect([syncs.count(), idsOf(file)]).toEqual([0, ["first", "second"]]);
  const order: string[] = [];
  const written = file.write((tx) => insert(tx, "third")).then((id) => order.push(id));
  await nextTurn();
  const committed = file.commit((tx) => insert(tx, "fourth")).then((id) => order.push(id));
  await nextTurn();
  expect([syncs.count(), order]).toEqual([1, []]);
  syncs.release();
  await Promise.all([written, committed]);
  expect([syncs.count(), order]).toEqual([1, ["third", "fourth"]]);
  expect(announced).toEqual([["first"], ["second"], ["third"], ["fourth"]]);
});

test("[DB1] writes of one turn share a transaction: together they cost one sync", async () => {
  const file = open();
  const syncs = holdSyncs();
  const writes = ["a", "b", "c"].map((id) => file.write((tx) => insert(tx, id)));
  await Bun.sleep(20);
  expect(syncs.count()).toBe(1);
  syncs.release();
  // Where the machine is slow, they are two transactions.
  syncFile = (descriptor, done) => fs.fdatasync(descriptor, done);
  expect(await Promise.all(writes)).toEqual(["a", "b", "c"]);
});

test("[DB2] a write that throws is undone alone; others of its transaction stay", async () => {
  const file = open();
  const results = await Promise.allSettled([
    file.write((tx) => insert(tx, "a")),
    file.write((tx) => {
      insert(tx, "b");
      throw new Error("no b");
    }),
    file.write((tx) => insert(tx, "a")),
    file.write((tx) => insert(tx, "c")),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
  expect(idsOf(file)).toEqual(["a", "c"]);
  expect(file.rowCount("items")).toBe(2);
  // In one commit, or in two where the machine is slow.
  expect(announced.flat()).toEqual(["a", "c"]);
});

test("[DB2] a write alone in its transaction is undone too if it throws", async () => {
  const file = open();
  const failing = file.write((tx) => {
    insert(tx, "a");
    throw new Error("no a");
  });
  await expect(failing).rejects.toThrow("no a");
  await failing.catch(() => undefined);
  await file.write((tx) => insert(tx, "b"));
  expect(idsOf(file)).toEqual(["b"]);
});

test("[DB3] nothing is answered or announced before its sync", async () => {
  const file = open();
  await file.write((tx) => insert(tx, "first"));
  announced.length = 0;
  const syncs = holdSyncs();
  let isAnswered = false;
  const write = file
    .write((tx) => insert(tx, "a"))
    .then(() => {
      isAnswered = true;
    });
  await Bun.sleep(30);
  expect(idsOf(file)).toEqual(["a", "first"]);
  expect(isAnswered).toBe(false);
  expect(announced).toEqual([]);
  syncs.release();
  await write;
  expect(announced).toEqual([["a"]]);
});

test("[DB3] commits during a sync wait for the next one, which covers them all", async () => {
  const file = open();
  await file.write((tx) => insert(tx, "first"));
  const syncs = holdSyncs();
  const answered: string[] = [];
  const note = (id: string) => file.write((tx) => insert(tx, id)).then((value) => answered.push(value));
  const writes = [note("a")];
  await Bun.sleep(10);
  writes.push(note("b"));
  await Bun.sleep(10);
  writes.push(note("c"));
  await Bun.sleep(10);
  expect(syncs.count()).toBe(1);
  syncs.release();
  await writes[0];
  await Bun.sleep(20);
  expect(answered).toEqual(["a"]);
  expect(syncs.count()).toBe(2);
  syncs.release();
  await Promise.all(writes);
  expect(answered).toEqual(["a", "b", "c"]);
});

test("[DB4] changes are announced in order of commit, before the promises resolve", async () => {
  const order: string[] = [];
  const file = engine.open(join(directory, "order.db"), {
    migrate: (sqlite) => sqlite.run(CREATE),
    onChange: (groups) => order.push(...groups.flat().map(({ id }) => `change ${id}`)),
  });
  const ids = Array.from({ length: 40 }, (_, n) => String(n).padStart(2, "0"));
  await Promise.all(ids.map((id) => file.write((tx) => insert(tx, id)).then(() => order.push(`answer ${id}`))));
  expect(order.filter((entry) => entry.startsWith("change"))).toEqual(ids.map((id) => `change ${id}`));
  expect(order.filter((entry) => entry.startsWith("answer"))).toEqual(ids.map((id) => `answer ${id}`));
  for (const id of ids) expect(order.indexOf(`change ${id}`)).toBeLessThan(order.indexOf(`answer ${id}`));
});

test("[DB220] a commit is noted when it can be seen, and before it is announced; a listener that throws is reported", async () => {
  const order: string[] = [];
  const file = engine.open(join(directory, "noted.db"), {
    migrate: (sqlite) => sqlite.run(CREATE),
    onCommit(groups) {
      for (const { id } of groups.flat()) {
        const isSeen = idsOf(file).includes(id);
        order.push(`${isSeen ? "seen" : "unseen"} ${id}`);
      }
      throw new Error("the listener failed");
    },
    onChange: (groups) => order.push(...groups.flat().map(({ id }) => `change ${id}`)),
  });
  await file.write((tx) => insert(tx, "a"));
  expect(order).toEqual(["seen a", "change a"]);
});

test("[DB4] a listener that throws is reported and prevents no answer", async () => {
  const file = engine.open(join(directory, "listener.db"), {
    migrate: (sqlite) => sqlite.run(CREATE),
    onChange: () => {
      throw new Error("listener broke");
    },
  });
  expect(await file.write((tx) => insert(tx, "a"))).toBe("a");
  expect(failures.map(String)).toEqual(["Error: listener broke"]);
});

test("[DB5] a nested savepoint is undone with its changes, and its error is rethrown", async () => {
  const file = open();
  await file.write((tx) => {
    insert(tx, "a");
    expect(() =>
      tx.savepoint(() => {
        insert(tx, "b");
        tx.savepoint(() => insert(tx, "c"));
        throw new Error("undo b and c");
      }),
    ).toThrow("undo b and c");
    tx.savepoint(() => insert(tx, "d"));
  });
  expect(idsOf(file)).toEqual(["a", "d"]);
  expect(announced).toEqual([["a+d"]]);
  expect(file.rowCount("items")).toBe(2);
});

test("[DB6] a function that returns a promise is refused, and what it wrote is undone", async () => {
  const file = open();
  const late = (tx: Transaction) => Promise.resolve(insert(tx, "late"));
  // The type refuses a promise; a cast meets the check.
  const write = file.write(late as never);
  await expect(write).rejects.toThrow("must be synchronous");
  await write.catch(() => undefined);
  expect(idsOf(file)).toEqual([]);
});

test("[DB6] a transaction that is used after its write throws", async () => {
  const file = open();
  let kept: Transaction | null = null;
  await file.write((tx) => {
    kept = tx;
  });
  expect(() => (kept as unknown as Transaction).query("SELECT 1")).toThrow("after its write()");
});

test.each([
  ["RELEASE", `RELEASE "write"`],
  ["ROLLBACK TO", `RELEASE "write"; SELECT * FROM nowhere`],
])("[DB100] where %s of a write's savepoint fails, every write of its transaction is told", async (_, sql) => {
  const file = open();
  const first = file.write((tx) => insert(tx, "first"));
  // The savepoint is gone, so that the writer's next statement about it fails.
  const broken = file.write((tx) => {
    insert(tx, "broken");
    for (const statement of sql.split("; ")) tx.query(statement).run();
  });
  const behind = file.write((tx) => insert(tx, "behind"));
  const results = await Promise.race([Promise.allSettled([first, broken, behind]), Bun.sleep(2_000)]);
  expect(results).toMatchObject([{ status: "rejected" }, { status: "rejected" }, { status: "fulfilled" }]);
  expect(idsOf(file)).toEqual(["behind"]);
  await file.write((tx) => insert(tx, "later"));
  expect(idsOf(file)).toEqual(["behind", "later"]);
});

test("[DB101] a savepoint that cannot be undone fails its write, also if the write continues", async () => {
  const file = open();
  const write = file.write((tx) => {
    insert(tx, "kept");
    try {
      tx.savepoint(() => {
        insert(tx, "half");
        tx.query(`RELEASE "nested0"`).run();
        throw new Error("this record fails");
      });
    } catch {
      // A batch skips failing records in this way.
    }
    return insert(tx, "more");
  });
  await expect(write).rejects.toThrow("no such savepoint");
  expect(idsOf(file)).toEqual([]);
  expect(file.rowCount("items")).toBe(0);
  expect(announced).toEqual([]);
});

test("[DB7] after a failed sync writes and every way to read are 503, and the reason is reported once", async () => {
  const file = open();
  await file.write((tx) => insert(tx, "before"));
  const prepared = file.prepare<{ id: string }>("SELECT id FROM items");
  const syncs = holdSyncs();
  const lost = file.write((tx) => insert(tx, "lost"));
  await Bun.sleep(10);
  const waiting = file.write((tx) => insert(tx, "waiting"));
  // The read ends after the failed sync: it may have seen lost changes.
  const slow = file.read(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT max(i) FROM n",
    [],
  );
  slow.catch(() => {});
  await Bun.sleep(10);
  announced.length = 0;
  syncs.release(new Error("EIO: the disk is gone"));
  for (const write of [lost, waiting, slow]) {
    const error = await write.catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(AppError);
    expect((error as AppError).status).toBe(503);
    expect((error as AppError).message).toContain("until the server has been restarted");
  }
  syncFile = fs.fdatasync;
  await expect(file.write((tx) => insert(tx, "later"))).rejects.toMatchObject({ status: 503 });
  expect(announced).toEqual([]);
  expect(failures.map(String)).toEqual(["Error: EIO: the disk is gone"]);
  for (const read of [
    () => idsOf(file),
    () => prepared.all(),
    () => prepared.get(),
    () => file.rowCount("items"),
    () => file.assertReadable(),
  ]) {
    expect(read).toThrow("until the server has been restarted");
  }
  await expect(file.read("SELECT id FROM items", [])).rejects.toMatchObject({ status: 503 });
});

test("[DB7] a close after a failed sync does not change the WAL, and the next start replays it", async () => {
  const file = open();
  await file.write((tx) => insert(tx, "before"));
  syncFile = (_, done) => setImmediate(() => done(new Error("EIO: the disk is gone")));
  await expect(file.write((tx) => insert(tx, "lost"))).rejects.toMatchObject({ status: 503 });
  const walBytes = fs.statSync(`${file.path}-wal`).size;
  await file.close();
  expect(fs.statSync(`${file.path}-wal`).size).toBe(walBytes);
  syncFile = fs.fdatasync;
  const reopened = open();
  expect(idsOf(reopened)).toContain("before");
  await reopened.write((tx) => insert(tx, "after"));
});

test.each(["EMFILE", "ENFILE", "ENOMEM"])(
  "[DB102] a sync that meets %s is tried again, and its write succeeds",
  async (code) => {
    const file = open();
    let tries = 0;
    syncFile = (descriptor, done) => {
      tries += 1;
      if (tries > 1) fs.fdatasync(descriptor, done);
      else setImmediate(() => done(Object.assign(new Error(code), { code })));
    };
    await file.write((tx) => insert(tx, "a"));
    expect(idsOf(file)).toEqual(["a"]);
    expect(failures).toEqual([]);
  },
);

test("[DB102] while a sync is slow, new writes are refused, and those before it succeed with it", async () => {
  const file = open();
  let isShort = true;
  syncFile = (descriptor, done) => {
    if (isShort) setImmediate(() => done(Object.assign(new Error("EMFILE"), { code: "EMFILE" })));
    else fs.fdatasync(descriptor, done);
  };
  const first = file.write((tx) => insert(tx, "a"));
  for (let isRefused = false; !isRefused; ) {
    await Bun.sleep(2);
    isRefused = await Promise.race([
      file
        .write((tx) => insert(tx, Bun.randomUUIDv7()))
        .then(
          () => false,
          (cause: { status: number }) => cause.status === 503,
        ),
      Bun.sleep(2).then(() => false),
    ]);
  }
  isShort = false;
  await first;
  await file.write((tx) => insert(tx, "b"));
  expect(idsOf(file)).toContain("a");
  expect(idsOf(file)).toContain("b");
  expect(failures).toEqual([]);
});

test("[DB8] a full disk is 507 for the writes of that transaction, and writes work again once there is room", async () => {
  const file = open();
  await file.write((tx) => insert(tx, "before"));
  const pages = file.query<{ page_count: number }>("PRAGMA page_count").get()?.page_count ?? 0;
  file.sqlite.run(`PRAGMA max_page_count = ${pages}`);
  const results = await Promise.allSettled([
    file.write((tx) => insert(tx, "small")),
    file.write((tx) => tx.query("INSERT INTO items VALUES ('big', ?)").run("x".repeat(100_000))),
  ]);
  for (const result of results) {
    expect(result.status).toBe("rejected");
    if (result.status === "rejected") expect(result.reason).toMatchObject({ status: 507 });
  }
  expect(file.rowCount("items")).toBe(1);
  file.sqlite.run("PRAGMA max_page_count = 1000000");
  await file.write((tx) => insert(tx, "after"));
  expect(idsOf(file)).toEqual(["after", "before"]);
});

test("[DB9] a flood of writes runs in transactions of bounded size, with turns of the event loop between them", async () => {
  const file = open();
  let turns = 0;
  const count = () => {
    turns += 1;
    if (turns < 10_000) setImmediate(count);
  };
  const writes = Array.from({ length: 3000 }, (_, n) => file.write((tx) => insert(tx, `flood ${n}`)));
  setImmediate(count);
  await Promise.all(writes);
  expect(turns).toBeGreaterThan(3);
  expect(file.rowCount("items")).toBe(3000);
});

test("[DB9] writes beyond the queue's bound are 503 at once", async () => {
  const file = open();
  const writes = Array.from({ length: WAITING_WRITES_MAX }, () => file.write(() => null));
  await expect(file.write(() => null)).rejects.toMatchObject({ status: 503 });
  await Promise.all(writes);
  expect(await file.write(() => "room again")).toBe("room again");
});

test("[DB9] a write that is done takes no memory while others wait", async () => {
  const file = open();
  const before = heapBytes();
  for (let index = 0; index < 500; index++) {
    const text = "x".repeat(200_000 + index);
    void file.commit(() => text.length);
  }
  const others = Array.from({ length: 2_000 }, () => file.commit(() => null));
  const taken = file.commit(() => heapBytes() - before);
  const last = Array.from({ length: 2_000 }, () => file.commit(() => null));
  expect(await taken).toBeLessThan(50_000_000);
  await Promise.all([...others, ...last]);
});

test("[DB10] row counts follow commits, not attempts, and survive closing the file", async () => {
  const file = open();
  await Promise.allSettled([
    file.write((tx) => insert(tx, "a")),
    file.write((tx) => insert(tx, "b")),
    file.write((tx) => {
      insert(tx, "c");
      throw new Error("no c");
    }),
  ]);
  await file.write((tx) => {
    tx.query("DELETE FROM items WHERE id = 'a'").run();
    tx.change(removed("a"));
  });
  expect(file.rowCount("items")).toBe(1);
  expect(file.rowCount("unknown")).toBe(0);
  await file.close();
  expect(open().rowCount("items")).toBe(1);
});

test("[DB11] close waits for writes under way, then refuses new ones", async () => {
  const file = open();
  const writes = ["a", "b"].map((id) => file.write((tx) => insert(tx, id)));
  const closed = file.close();
  await expect(file.write((tx) => insert(tx, "late"))).rejects.toMatchObject({ status: 503 });
  expect(await Promise.all(writes)).toEqual(["a", "b"]);
  await closed;
  expect(fs.readdirSync(directory)).toEqual(["file.db"]);
  expect(idsOf(open())).toEqual(["a", "b"]);
});

test("[DB12] statements are cached, and an evicted one is usable until the end of its turn", async () => {
  const file = engine.open(join(directory, "cache.db"), { statementsMax: 4 });
  const first = file.query("SELECT 1 AS n");
  expect(file.query("SELECT 1 AS n")).toBe(first);
  for (let n = 0; n < 20; n += 1) file.query(`SELECT ${n}, 'other'`);
  expect(first.get()).toEqual({ n: 1 });
  await Bun.sleep(5);
  // Outside of requests it is the prepared statement itself.
  expect((first as PreparedStatement).isFinalized).toBe(true);
  expect(file.query("SELECT 1 AS n").get()).toEqual({ n: 1 });
});
