/** Entries of a real owner, applied to a file that others read. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openOwnerFiles } from "../../../../tests/support/cluster/owner-files.ts";
import { temporaryDirectory } from "../../../../tests/support/index.ts";
import { random, testSeed } from "../../../../tests/support/random.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { type CommitContent, decodeContent, type PartContent } from "../entries/content.ts";
import { FollowedFile, UnusableFile } from "./followed-file.ts";
import { requireTechnique, UnfollowableSqlite } from "./require-technique.ts";
import { writeAt } from "./wal-index.ts";

const PATH = "databases/notes.db";
const INSERT = `INSERT INTO "notes" ("text", "copies") VALUES (?, ?)`;
const randomSalts = (count: number): Uint8Array => Buffer.from(systemIds.secret(count), "base64url");
const deps = { write: writeAt, randomSalts };

type Entry = CommitContent | PartContent;

/** Makes a history of a file: its creation, its entries, and its content at the end. */
async function history(seed: number, { rounds, largeAt = -1 }: { rounds: number; largeAt?: number }) {
  const chance = random(seed);
  const directory = temporaryDirectory();
  const entries: Entry[] = [];
  let created = new Uint8Array(0);
  const owner = openOwnerFiles(directory, ({ content }) => {
    const decoded = decodeContent(content);
    if (decoded.kind === "created") created = new Uint8Array(decoded.content);
    else if (decoded.kind === "commit" || decoded.kind === "part") entries.push(decoded);
  });
  const file = owner.open(PATH);
  for (let round = 0; round < rounds; round++) {
    const rows = round === largeAt ? 20_000 : 1 + chance.below(30);
    await file.write((tx) => {
      if (chance.chance(0.1)) tx.query(`DELETE FROM "notes" WHERE "id" % 5 = ?`).run(chance.below(5));
      for (let row = 0; row < rows; row++)
        tx.query(INSERT).run(String(chance.next()).repeat(1 + chance.below(40)), row);
    });
  }
  await owner.stop();
  return { created, entries, content: readFileSync(join(directory, PATH)) };
}

function place(content: Uint8Array): string {
  const path = join(temporaryDirectory(), PATH);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

test("[CLU63] a follower's file is the owner's, byte by byte, and a reader sees each commit whole", async () => {
  const { created, entries, content } = await history(testSeed(63), { rounds: 150, largeAt: 60 });
  const path = place(created);
  const file = new FollowedFile(path, deps);
  const reader = new Database(path, { readonly: true });
  const number = reader.prepare<{ number: number }, []>(`SELECT "number" FROM "_platform_commit"`);
  let longestWal = 0;
  for (const [index, entry] of entries.entries()) {
    file.apply([entry]);
    expect(number.get()?.number).toBe(file.state.number);
    if (index % 40 === 0) expect(reader.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    longestWal = Math.max(longestWal, file.frames);
  }
  // More than the first block of the index has.
  expect(longestWal).toBeGreaterThan(4_062);
  expect(entries.some(({ kind }) => kind === "part")).toBe(true);
  const other = new Database(path, { readwrite: true });
  other.query("PRAGMA wal_checkpoint(PASSIVE)").get();
  other.close();
  expect(file.endWal()).toBe(true);
  reader.close();
  file.close();
  expect(readFileSync(path).equals(content)).toBe(true);
});

test("[CLU64] an entry that the file holds is left out, and one that does not follow is refused", async () => {
  const { created, entries } = await history(testSeed(64), { rounds: 10 });
  const path = place(created);
  const file = new FollowedFile(path, deps);
  const [first, second, third, fourth] = entries as CommitContent[];
  if (first === undefined || second === undefined || third === undefined || fourth === undefined) throw new Error();
  file.apply([first, second]);
  const { frames } = file;
  file.apply([first, second]);
  expect(file.frames).toBe(frames);
  expect(() => file.apply([fourth])).toThrow(UnusableFile);
  expect(() => file.apply([{ ...third, previous: { ...third.previous, nonce: 1 } }])).toThrow(UnusableFile);
  expect(() => file.apply([{ ...second, nonce: 1 }])).toThrow(UnusableFile);
  expect(() => file.apply([{ ...third, parts: 1 }])).toThrow(UnusableFile);
  file.apply([third, fourth]);
  expect(file.state.number).toBe(fourth.number);
  file.close();
});

test("[CLU72] what SQLite would not read is found before any file is touched", () => {
  const folder = join(temporaryDirectory(), "tried");
  requireTechnique(folder, deps);
  expect(existsSync(folder)).toBe(false);
  // The header of the index is never written, as if SQLite looked for it elsewhere; or the frames are not.
  for (const lost of [48, 4_120]) {
    const write: typeof writeAt = (descriptor, bytes, offset) => {
      if (bytes.byteLength % lost !== 0) writeAt(descriptor, bytes, offset);
    };
    expect(() => requireTechnique(folder, { ...deps, write })).toThrow(UnfollowableSqlite);
    expect(existsSync(folder)).toBe(false);
  }
});
