/** Files of a follower: whole positions, files that come, go and come back, and files that are not as the log has them. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import {
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { openOwnerFiles } from "../../../../tests/support/cluster/owner-files.ts";
import { temporaryDirectory } from "../../../../tests/support/index.ts";
import { until } from "../../../../tests/support/until.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import type { DatabaseFile } from "../../db/types.ts";
import { encodeContent } from "../entries/content.ts";
import type { LogEntry, LogRow } from "../protocol/statements.ts";
import type { FileSource } from "./file-source.ts";
import { FollowerFiles } from "./follower-files.ts";
import { OPEN_FILES_MAX } from "./limits.ts";

const NOTES = "databases/notes.db";
const SYSTEM = "system.db";
const INSERT = `INSERT INTO "notes" ("text", "copies") VALUES (?, ?)`;

/** A log in memory, with an owner that writes to it. */
function ownerWithLog() {
  const directory = temporaryDirectory();
  const entries: LogEntry[] = [];
  let waiting: LogRow[] = [];
  const owner = openOwnerFiles(directory, (row) => void waiting.push(row));
  return {
    owner,
    entries,
    /** Appends what was committed since the last position. */
    append(): LogEntry {
      const position = entries.length + 1;
      const previous = entries.at(-1)?.nonce ?? "";
      const entry = { position, epoch: 1, nonce: `n${position}`, previous, body: waiting };
      waiting = [];
      entries.push(entry);
      return entry;
    },
    add: (file: DatabaseFile, text: string) => file.write((tx) => void tx.query(INSERT).run(text, 1)),
  };
}

function openFollower(directory: string, how: { source?: FileSource; wasOwner?: boolean } = {}) {
  const failures: string[] = [];
  const visible: string[] = [];
  const closed: string[] = [];
  const files = new FollowerFiles(
    {
      directory,
      clock: systemClock,
      ids: systemIds,
      onVisible: (path) => void visible.push(path),
      onClosing: (path) => void closed.push(path),
      onFailure: (path, cause) => void failures.push(`${path}: ${cause instanceof Error ? cause.message : cause}`),
      source: how.source ?? null,
    },
    { wasOwner: how.wasOwner ?? false },
  );
  return { files, failures, visible, closed };
}

/** Fetches from the log alone, which has a file from its creation on. */
const logSource = (entries: readonly LogEntry[]): FileSource => ({
  list: async () => [],
  fetch: async () => null,
  async *entries(_, { upTo }) {
    yield* entries.filter(({ position }) => position <= upTo.position);
  },
});

const textsIn = (path: string): string[] => {
  const sqlite = new Database(path, { readonly: true });
  try {
    return sqlite
      .query<{ text: string }, []>(`SELECT "text" FROM "notes" ORDER BY "id"`)
      .all()
      .map(({ text }) => text);
  } finally {
    sqlite.close();
  }
};

test("[CLU67] a position is applied whole, with files that are made and removed in it, and the place is kept", async () => {
  const { owner, entries, append, add } = ownerWithLog();
  const [system, notes] = [owner.open(SYSTEM), owner.open(NOTES)];
  await add(system, "a");
  await add(notes, "b");
  append();
  const directory = temporaryDirectory();
  const first = openFollower(directory);
  first.files.apply(entries);
  expect(first.files.isSettled).toBe(true);
  expect(first.files.place).toEqual({ position: 1, nonce: "n1" });
  expect([textsIn(join(directory, SYSTEM)), textsIn(join(directory, NOTES))]).toEqual([["a"], ["b"]]);
  expect(first.visible.sort()).toEqual([join(directory, NOTES), join(directory, SYSTEM)].sort());
  // Removed and made again under its name, and another that does not outlive the position.
  for (const path of [NOTES, "databases/passing.db"]) {
    const file = path === NOTES ? notes : owner.open(path);
    await file.close();
    owner.removing(path);
    for (const ending of ["", "-wal", "-shm"])
      await Bun.file(join(owner.directory, path + ending))
        .delete()
        .catch(() => {});
  }
  await add(owner.open(NOTES), "c");
  first.files.apply([append()]);
  expect(textsIn(join(directory, NOTES))).toEqual(["c"]);
  expect(first.closed).toEqual([join(directory, NOTES)]);
  expect(existsSync(join(directory, "databases/passing.db"))).toBe(false);
  expect(first.files.paths.sort()).toEqual([NOTES, SYSTEM]);
  await first.files.close();
  const again = openFollower(directory);
  expect(again.files.place).toEqual({ position: 2, nonce: "n2" });
  expect(again.files.logged(NOTES)?.number).toBeGreaterThan(0);
  await again.files.close();
  expect([...first.failures, ...again.failures]).toEqual([]);
  await owner.stop();
});

test("[CLU68] a file that holds more than the log, or something else, is set aside and fetched anew; the others stay", async () => {
  const { owner, entries, append, add } = ownerWithLog();
  const [system, notes] = [owner.open(SYSTEM), owner.open(NOTES)];
  await add(system, "a");
  await add(notes, "b");
  append();
  const directory = temporaryDirectory();
  const before = openFollower(directory);
  before.files.apply(entries);
  await before.files.close();
  // Commits of an owner that nobody has acknowledged.
  const unacknowledged = new Database(join(directory, NOTES), { readwrite: true });
  unacknowledged.run(`UPDATE "_platform_commit" SET "number" = "number" + 1, "nonce" = 7`);
  unacknowledged.run(INSERT, ["lost", 1]);
  unacknowledged.close();
  const after = openFollower(directory, { source: logSource(entries), wasOwner: true });
  expect(after.files.isSettled).toBe(false);
  await add(notes, "c");
  after.files.apply([append()]);
  // The log has another commit of this number.
  await after.files.settled();
  expect(textsIn(join(directory, NOTES))).toEqual(["b", "c"]);
  expect(textsIn(join(directory, SYSTEM))).toEqual(["a"]);
  expect(after.failures).toHaveLength(1);
  await after.files.close();

  const more = new Database(join(directory, NOTES), { readwrite: true });
  more.run(`UPDATE "_platform_commit" SET "number" = "number" + 1000, "nonce" = 7`);
  more.close();
  const last = openFollower(directory, { source: logSource(entries), wasOwner: true });
  expect(last.files.isSettled).toBe(false);
  last.files.reachedEnd();
  await last.files.settled();
  expect(textsIn(join(directory, NOTES))).toEqual(["b", "c"]);
  expect(last.failures).toHaveLength(1);
  await last.files.close();
  await owner.stop();
});

test("[CLU68] a file that has lost commits, or is no database any more, is fetched anew", async () => {
  const { owner, entries, append, add } = ownerWithLog();
  const notes = owner.open(NOTES);
  const directory = temporaryDirectory();
  let files = openFollower(directory);
  for (const text of ["a", "b", "c"]) {
    await add(notes, text);
    files.files.apply([append()]);
  }
  await files.files.close();
  // A flipped byte in the last frames: SQLite drops them without a word.
  const wal = join(directory, `${NOTES}-wal`);
  const bytes = readFileSync(wal);
  const at = bytes.byteLength - 2_000;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(wal, bytes);
  expect(textsIn(join(directory, NOTES))).toEqual(["a", "b"]);
  files = openFollower(directory, { source: logSource(entries) });
  expect(files.files.isSettled).toBe(false);
  await add(notes, "d");
  files.files.apply([append()]);
  await files.files.settled();
  expect(textsIn(join(directory, NOTES))).toEqual(["a", "b", "c", "d"]);
  await files.files.close();

  writeFileSync(join(directory, NOTES), "nothing");
  files = openFollower(directory, { source: logSource(entries) });
  await add(notes, "e");
  files.files.apply([append()]);
  await files.files.settled();
  expect(textsIn(join(directory, NOTES))).toEqual(["a", "b", "c", "d", "e"]);
  await files.files.close();
  await owner.stop();
});

test("[CLU69] files that this node has written as the owner since are taken as it has left them", async () => {
  const { owner, append, add } = ownerWithLog();
  const notes = owner.open(NOTES);
  const directory = temporaryDirectory();
  const noted = join(directory, "cluster");
  const before = join(temporaryDirectory(), "noted");
  const follower = openFollower(directory);
  await add(notes, "a");
  follower.files.apply([append()]);
  await follower.files.close();
  cpSync(noted, before, { recursive: true });
  const later = openFollower(directory);
  await add(notes, "b");
  later.files.apply([append()]);
  const [place, facts] = [later.files.place, later.files.logged(NOTES)];
  await later.files.close();
  // What the node has noted as a follower is older than the file.
  rmSync(noted, { recursive: true });
  cpSync(before, noted, { recursive: true });
  const again = openFollower(directory);
  expect([again.files.isSettled, facts?.path]).toEqual([false, NOTES]);
  again.files.takeOver(place, facts === null ? [] : [facts]);
  expect(again.files.isSettled).toBe(true);
  again.files.reachedEnd();
  await add(notes, "c");
  again.files.apply([append()]);
  expect(textsIn(join(directory, NOTES))).toEqual(["a", "b", "c"]);
  expect(again.failures).toEqual([]);
  await again.files.close();
  await owner.stop();
});

test("[CLU69] files that are given up to the log's start stay as far as the log has what they hold", async () => {
  const { owner, entries, append, add } = ownerWithLog();
  const notes = owner.open(NOTES);
  const directory = temporaryDirectory();
  const { files, failures } = openFollower(directory);
  for (const text of ["a", "b"]) {
    await add(notes, text);
    files.apply([append()]);
  }
  files.setAside();
  expect(files.place.position).toBe(0);
  expect(files.isSettled).toBe(false);
  files.apply(entries);
  expect(files.isSettled).toBe(true);
  expect(textsIn(join(directory, NOTES))).toEqual(["a", "b"]);
  expect(failures).toEqual([]);
  expect(readdirSync(join(directory, "cluster/aside"))).toEqual([]);
  await files.close();
  await owner.stop();
});

test("[CLU70] a long WAL is moved into its file while entries come", async () => {
  const { owner, append, add } = ownerWithLog();
  const notes = owner.open(NOTES);
  const directory = temporaryDirectory();
  const { files, failures } = openFollower(directory);
  const sizeOf = () => Bun.file(join(directory, `${NOTES}-wal`)).size;
  let isEnded = false;
  let largest = 0;
  await until("the WAL is ended", async () => {
    for (let round = 0; round < 20; round++) await add(notes, "x".repeat(60_000));
    files.apply([append()]);
    largest = Math.max(largest, sizeOf());
    isEnded ||= sizeOf() < largest / 2;
    return isEnded;
  });
  expect(failures).toEqual([]);
  await files.close();
  await owner.stop();
  expect(textsIn(join(directory, NOTES))).toEqual(textsIn(join(owner.directory, NOTES)));
});

test("[CLU73] files of instances that were not changed for longest are closed, and no reader of others is told", async () => {
  const { owner, append, add } = ownerWithLog();
  const directory = temporaryDirectory();
  const { files, failures, closed } = openFollower(directory);
  const paths = Array.from({ length: 2 * OPEN_FILES_MAX }, (_, index) => `databases/shop/tenant-${index}.db`);
  for (const [index, path] of [SYSTEM, ...paths].entries()) {
    const file = owner.open(path);
    await add(file, `text ${index}`);
    await file.close();
    files.apply([append()]);
  }
  const descriptors = readdirSync("/proc/self/fd").flatMap((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      // Closed meanwhile: the one of this directory.
      return [];
    }
  });
  const open = new Set(descriptors.filter((path) => path.startsWith(directory) && path.endsWith(".db")));
  expect(open.has(join(directory, SYSTEM))).toBe(true);
  expect(open.has(join(directory, paths[0] ?? ""))).toBe(false);
  expect([...open].filter((path) => path.includes("tenant-")).length).toBeLessThanOrEqual(OPEN_FILES_MAX);
  expect(closed).toEqual([]);
  for (const index of [0, 5]) expect(textsIn(join(directory, paths[index] ?? ""))).toEqual([`text ${index + 1}`]);
  expect(failures).toEqual([]);
  await files.close();
  await owner.stop();
}, 60_000);

test("[CLU104] what waits to be applied leaves no room from 64 MiB on, until it is less", async () => {
  const { owner, entries, append, add } = ownerWithLog();
  await add(owner.open(SYSTEM), "a");
  append();
  const [first] = entries;
  if (first === undefined) throw new Error("there is no entry");
  const listed = Promise.withResolvers<[]>();
  const source = { ...logSource(entries), list: () => listed.promise };
  const { files } = openFollower(temporaryDirectory(), { source });
  files.rebase({ position: 0, nonce: "" });
  files.apply([first]);
  expect([files.hasRoom, files.isSettled]).toEqual([true, false]);
  // It has no step: its file is made and removed in it.
  const content = encodeContent({ kind: "created", path: "kv/large.db", content: incompressible(33 * 1024 * 1024) });
  const large = { file: "large", number: 0, content };
  const removed = { file: "large", number: 0, content: encodeContent({ kind: "removed", path: "kv/large.db" }) };
  const next = { position: first.position + 1, previous: first.nonce };
  files.apply([{ ...first, ...next, nonce: "large", body: [large, { ...large, number: -1 }, removed] }]);
  expect(files.hasRoom).toBe(false);
  listed.resolve([]);
  await files.settled();
  expect([files.hasRoom, files.place.position]).toEqual([true, next.position]);
  await files.close();
  await owner.stop();
}, 30_000);

function incompressible(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let offset = 0; offset < length; offset += 65_536)
    crypto.getRandomValues(bytes.subarray(offset, offset + 65_536));
  return bytes;
}

test("[CLU103] behind a trimmed log, files that are as the object store has them stay, and others are fetched", async () => {
  const { owner, entries, append, add } = ownerWithLog();
  const [system, notes] = [owner.open(SYSTEM), owner.open(NOTES)];
  await add(system, "a");
  await add(notes, "b");
  append();
  const directory = temporaryDirectory();
  const { files, failures } = openFollower(directory, { source: logSource(entries) });
  files.apply(entries);
  await files.settled();
  const system0 = files.logged(SYSTEM);
  const notes0 = files.logged(NOTES);
  if (system0 === null || notes0 === null) throw new Error("the files are not there");
  // What follows is dropped from the log before this node has seen it, but for the last entry.
  await add(notes, "c");
  const base = append();
  await add(notes, "d");
  const last = append();
  const fetched: string[] = [];
  const copy = join(temporaryDirectory(), "copy.db");
  const other = openFollower(temporaryDirectory(), { source: logSource(entries) });
  other.files.apply(entries);
  await other.files.settled();
  const now = other.files.logged(NOTES);
  await other.files.close();
  if (now === null) throw new Error("the copy is not there");
  const sqlite = new Database(join(owner.directory, NOTES), { readonly: true });
  writeFileSync(copy, sqlite.serialize());
  sqlite.close();
  const source: FileSource = {
    list: async () => [system0, { ...now, id: notes0.id, path: NOTES }],
    async fetch(file, target) {
      fetched.push(file);
      copyFileSync(copy, target);
      return { path: NOTES, after: base, reached: last.position };
    },
    async *entries(file, { after, upTo }) {
      for (const entry of entries)
        if (entry.position > (after?.position ?? 0) && entry.position <= upTo.position)
          yield { ...entry, body: entry.body.filter((row) => row.file === file) };
    },
  };
  await files.close();
  const again = openFollower(directory, { source });
  again.files.rebase({ position: base.position, nonce: base.nonce });
  again.files.apply([last]);
  await again.files.settled();
  expect(fetched).toEqual([notes0.id]);
  expect(textsIn(join(directory, NOTES))).toEqual(["b", "c", "d"]);
  expect(textsIn(join(directory, SYSTEM))).toEqual(["a"]);
  expect([again.files.place.position, failures]).toEqual([last.position, []]);
  await again.files.close();
  await owner.stop();
});

/** Copies a data directory as a kill would leave it. */
function killed(directory: string): string {
  const left = temporaryDirectory();
  cpSync(directory, left, { recursive: true });
  return left;
}

/** A follower that has applied everything of an owner, whose files have the texts "a" and "b". */
async function followerOfTwo() {
  const log = ownerWithLog();
  const files = { system: log.owner.open(SYSTEM), notes: log.owner.open(NOTES) };
  await log.add(files.system, "a");
  await log.add(files.notes, "b");
  log.append();
  const directory = temporaryDirectory();
  const follower = openFollower(directory);
  follower.files.apply(log.entries);
  await follower.files.settled();
  await follower.files.close();
  return { ...log, ...files, directory };
}

/** Lets a fetch begin, and never end. */
function stuck(source: FileSource): { source: FileSource; begun: Promise<string> } {
  const { promise, resolve } = Promise.withResolvers<string>();
  const fetch = (id: string): Promise<never> => {
    resolve(id);
    return new Promise(() => {});
  };
  return { source: { ...source, fetch }, begun: promise };
}

test("[CLU74] a follower that is killed while it fetches what the log has dropped compares all files again", async () => {
  const { owner, entries, append, add, notes, directory } = await followerOfTwo();
  const other = owner.open("databases/other.db");
  await add(notes, "c");
  await add(other, "d");
  const base = append();
  const store = openFollower(temporaryDirectory(), { source: logSource(entries) });
  store.files.apply(entries);
  await store.files.settled();
  const listed = store.files.paths.flatMap((path) => store.files.logged(path) ?? []);
  await store.files.close();
  const source: FileSource = {
    list: async () => listed,
    async fetch(id, target) {
      const path = listed.find((file) => file.id === id)?.path ?? "";
      const sqlite = new Database(join(owner.directory, path), { readonly: true });
      writeFileSync(target, sqlite.serialize());
      sqlite.close();
      return { path, after: base, reached: base.position };
    },
    async *entries() {},
  };
  const { source: slow, begun } = stuck(source);
  const first = openFollower(directory, { source: slow, wasOwner: true });
  first.files.rebase({ position: base.position, nonce: base.nonce });
  await begun;
  expect(first.files.place.position).toBe(base.position);

  const left = killed(directory);
  await first.files.close();
  const { files } = openFollower(left, { source, wasOwner: true });
  expect([files.isSettled, files.place.position]).toEqual([false, 0]);
  files.rebase({ position: base.position, nonce: base.nonce });
  await until("the store is compared", () => files.place.position === base.position);
  await until("what is not as the log has it is fetched", () => {
    files.reachedEnd();
    return files.isSettled;
  });
  expect(files.paths.map((path) => textsIn(join(left, path)))).toEqual(
    files.paths.map((path) => textsIn(join(owner.directory, path))),
  );
  expect(files.paths.sort()).toEqual(listed.map(({ path }) => path).sort());
  await files.close();
  const last = openFollower(left, { wasOwner: true });
  expect([last.files.isSettled, last.files.place.position]).toEqual([true, base.position]);
  await last.files.close();
  await owner.stop();
});

test("[CLU74] a follower that is killed while it fetches a file does not go on without it", async () => {
  const { owner, entries, append, add, notes, directory } = await followerOfTwo();
  await add(notes, "c");
  append();
  writeFileSync(join(directory, NOTES), "nothing");
  const begun = Promise.withResolvers<void>();
  const slow: FileSource = {
    ...logSource(entries),
    // It has a part of what there is when the process is killed.
    async *entries() {
      yield* entries.slice(0, 1);
      begun.resolve();
      await new Promise(() => {});
    },
  };
  const first = openFollower(directory, { source: slow, wasOwner: true });
  first.files.apply(entries.slice(1));
  await begun.promise;

  const left = killed(directory);
  await first.files.close();
  const { files } = openFollower(left, { source: logSource(entries), wasOwner: true });
  expect([files.isSettled, files.place.position]).toEqual([false, 0]);
  files.apply(entries);
  await files.settled();
  expect(textsIn(join(left, NOTES))).toEqual(["b", "c"]);
  await files.close();
  await owner.stop();
});

test("[CLU74] a follower that is killed while its files begin anew knows that they may hold more than the log", async () => {
  const { owner, entries, append, add, notes, directory } = await followerOfTwo();
  await add(notes, "lost");
  const more = append();
  const first = openFollower(directory, { source: logSource(entries), wasOwner: true });
  first.files.apply([more]);
  await first.files.settled();
  first.files.setAside();
  // The log has lost what was appended last.
  entries.length = 1;
  first.files.apply(entries);
  expect(first.files.isSettled).toBe(false);

  const left = killed(directory);
  await first.files.close();
  const { files } = openFollower(left, { source: logSource(entries), wasOwner: true });
  expect([files.isSettled, files.place.position]).toEqual([false, 0]);
  files.apply(entries);
  files.reachedEnd();
  await files.settled();
  expect(textsIn(join(left, NOTES))).toEqual(["b"]);
  await files.close();
  await owner.stop();
});

test("[CLU74] a file that holds more than was applied to it still does after another kill", async () => {
  const { owner, entries, append, add, notes, directory } = await followerOfTwo();
  for (const text of ["c", "d"]) await add(notes, text);
  const sqlite = new Database(join(directory, NOTES), { readwrite: true });
  sqlite.run(`UPDATE "_platform_commit" SET "number" = "number" + 1000, "nonce" = 7`);
  sqlite.close();
  const next = append();
  const first = openFollower(directory, { source: logSource(entries), wasOwner: true });
  first.files.apply([next]);
  expect(first.files.isSettled).toBe(false);

  const left = killed(directory);
  await first.files.close();
  const { files } = openFollower(left, { source: logSource(entries), wasOwner: true });
  expect([files.isSettled, files.place.position]).toEqual([false, next.position]);
  files.reachedEnd();
  await files.settled();
  expect(textsIn(join(left, NOTES))).toEqual(["b", "c", "d"]);
  await files.close();
  await owner.stop();
});
