/** Tests of how much a restore reads. */
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../../../kernel/clock.ts";
import { systemIds } from "../../../../../kernel/ids.ts";
import { HOUR_MS, MINUTE_MS } from "../../../../../kernel/time/duration.ts";
import { createStorageEngine } from "../../../../db/index.ts";
import { Capture } from "../capture/capture.ts";
import { Spool } from "../capture/spool.ts";
import { segmentsOf } from "../format/archive.ts";
import { ENTRIES_OVER_COPY_BYTES } from "../limits.ts";
import { partsOf } from "../ship/disk.ts";
import { Shipper } from "../ship/shipper.ts";
import type { Store } from "../store/store.ts";
import { filesAt, restoreDatabases } from "./databases.ts";
import { momentOf } from "./moment.ts";
import { requireArchive } from "./restore.ts";

const ROWS = 500;
const ROW_BYTES = 3_900;
const STEPS = 90;
const STEP_MS = 10 * MINUTE_MS;
const CHANGES = 40;

test("[BK380] a restore of any moment reads at most twice the size of the database, and an hour of changes", async () => {
  const root = mkdtempSync(join(tmpdir(), "bytes-read-"));
  const dataDirectory = join(root, "data");
  mkdirSync(join(dataDirectory, "databases"), { recursive: true });
  const time = { now: Date.now() };
  const clock = { ...systemClock, now: () => time.now };
  const spool = new Spool({ dataDirectory, clock, bytesMax: 1_000_000_000 });
  const capture = new Capture({ dataDirectory, spool, clock });
  const engine = createStorageEngine({ clock, capture });
  capture.takePlace = () => engine.takePlace();
  const path = join(dataDirectory, "databases", "shared.db");
  const file = engine.open(path, {
    migrate: (sqlite) => void sqlite.run("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, bytes BLOB)"),
  });
  const settings = {
    dataDirectory,
    to: { folder: join(root, "store") },
    keepDays: 7,
    everyMs: 1000,
    owner: { id: "owner", directory: dataDirectory },
    server: "server",
  };
  const parts = partsOf(settings, clock);
  let shipper: Shipper | null = null;
  const pass = async (): Promise<void> => {
    const cut = { at: time.now, place: engine.takePlace() };
    const rotated = spool.rotate();
    const skipped = await engine.syncCommits();
    const request = {
      settings,
      takeOver: false,
      isFirst: shipper === null,
      verifiedAt: null,
      files: rotated === null ? [] : [rotated],
      skipped,
      cut,
      isLosing: false,
      isLast: false,
    };
    shipper ??= await Shipper.open(request, { ...parts, clock, ids: systemIds });
    await shipper.pass(request);
  };
  const change = (first: number, count: number) =>
    file.write((tx) => {
      const put = tx.query("INSERT OR REPLACE INTO t VALUES (?, ?)");
      for (let row = first; row < first + count; row++)
        put.run(row % ROWS, crypto.getRandomValues(Buffer.alloc(ROW_BYTES)));
    });
  await change(0, ROWS);
  for (let passes = 0; passes < 3; passes++) await pass();
  const moments: number[] = [];
  for (let step = 0; step < STEPS; step++) {
    time.now += STEP_MS;
    await change(step * CHANGES, CHANGES);
    moments.push(time.now);
    await pass();
  }
  const { store } = parts;
  const archive = await requireArchive(store);
  const size = statSync(path).size;
  const segments: { to: number; bytes: number }[] = [];
  for await (const { to, bytes } of segmentsOf(store, archive.manifest)) segments.push({ to, bytes });
  // What would be read without copies and merged objects.
  expect(segments.reduce((sum, { bytes }) => sum + bytes, 0)).toBeGreaterThan(4 * size);
  for (const at of [moments[STEPS / 3], moments[STEPS / 2], moments.at(-2)]) {
    if (at === undefined) throw new Error("there is no such moment");
    const { place } = await momentOf(store, archive, at);
    const [counted, bytesRead] = counting(store);
    const folder = mkdtempSync(join(root, "restored-"));
    const { signal } = new AbortController();
    const files = filesAt(archive, place);
    expect(files).toHaveLength(1);
    const placeOf = () => place;
    await restoreDatabases({ store: counted, archive, files, placeOf, folder, signal, onProgress() {} });
    const hour = segments.reduce((sum, { to, bytes }) => sum + (to > at - HOUR_MS && to <= at ? bytes : 0), 0);
    expect(bytesRead()).toBeGreaterThan(size / 2);
    expect(bytesRead()).toBeLessThan(2 * size + hour + ENTRIES_OVER_COPY_BYTES);
  }
  await file.close();
  await engine.stop();
}, 120_000);

/** Returns a store that counts the bytes of objects that are read. */
function counting(store: Store): [store: Store, bytes: () => number] {
  let read = 0;
  const counted: Store = {
    ...store,
    async read(key) {
      const bytes = await store.read(key);
      read += bytes?.byteLength ?? 0;
      return bytes;
    },
    async fetch(key, path) {
      const isThere = await store.fetch(key, path);
      if (isThere) read += statSync(path).size;
      return isThere;
    },
  };
  return [counted, () => read];
}
