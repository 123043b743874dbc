/** Rows that are made of a real writer's frames: they lead to its file, byte by byte. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openOwnerFiles } from "../../../../tests/support/cluster/owner-files.ts";
import { temporaryDirectory } from "../../../../tests/support/index.ts";
import { random, testSeed } from "../../../../tests/support/random.ts";
import { BrokenCommits, CommitRows } from "./commit-rows.ts";
import { decodeContent, type EntryContent, type FileState } from "./content.ts";

const PATH = "databases/notes.db";
const INSERT = `INSERT INTO "notes" ("text", "copies") VALUES (?, ?)`;

/** A file as its rows describe it. */
class Replica {
  pages = new Map<number, Uint8Array>();
  count = 0;
  state: FileState = { number: 0, nonce: 0 };
  commits = 0;
  parts = 0;
  #open: EntryContent[] = [];

  take(content: EntryContent): void {
    if (content.kind === "created") {
      this.count = content.content.byteLength / 4096;
      for (let page = 0; page < this.count; page++)
        this.pages.set(page + 1, content.content.slice(page * 4096, (page + 1) * 4096));
    }
    if (content.kind === "part") {
      expect([content.index, content.previous]).toEqual([this.#open.length, this.state]);
      this.#open.push(content);
      this.parts += 1;
    }
    if (content.kind !== "commit") return;
    expect([content.parts, content.previous]).toEqual([this.#open.length, this.state]);
    for (const { numbers, images } of [...this.#open, content] as (EntryContent & { kind: "commit" })[])
      for (const [index, page] of numbers.entries())
        this.pages.set(page, images.subarray(index * 4096, (index + 1) * 4096));
    this.#open = [];
    this.count = content.pages;
    this.state = { number: content.number, nonce: content.nonce };
    this.commits += 1;
  }

  bytes(): Buffer {
    return Buffer.concat(
      Array.from({ length: this.count }, (_, index) => this.pages.get(index + 1) ?? new Uint8Array(4096)),
    );
  }
}

test("[CLU61] rows of commits lead to the owner's file, through parts of large transactions and other openings", async () => {
  const chance = random(testSeed(61));
  const directory = temporaryDirectory();
  const replica = new Replica();
  for (let opening = 0; opening < 3; opening++) {
    const owner = openOwnerFiles(directory, ({ content }) => replica.take(decodeContent(content)), {
      known: replica.state,
    });
    const file = owner.open(PATH);
    for (let round = 0; round < 20; round++) {
      // 20,000 rows are more pages than SQLite's cache: it writes some of them before the end.
      const rows = opening === 1 && round === 10 ? 20_000 : 1 + chance.below(20);
      await file.write((tx) => {
        if (chance.chance(0.2)) tx.query(`DELETE FROM "notes" WHERE "id" % 3 = 0`).run();
        for (let row = 0; row < rows; row++)
          tx.query(INSERT).run(String(chance.next()).repeat(1 + chance.below(30)), row);
      });
    }
    await owner.stop();
    expect(replica.bytes().equals(readFileSync(join(directory, PATH)))).toBe(true);
  }
  expect(replica.commits).toBeGreaterThanOrEqual(60);
  expect(replica.parts).toBeGreaterThan(5);
});

test("[CLU62] a commit that does not follow the last one, or does not say which it is, is refused", async () => {
  const pieces: { pageBytes: number; content: Uint8Array<ArrayBuffer> }[] = [];
  let opened = { file: "", page: 0 };
  const owner = openOwnerFiles(temporaryDirectory(), () => {}, {
    onFrames: ({ pageBytes, content }) => pieces.push({ pageBytes, content: new Uint8Array(content) }),
    onOpened: (facts) => {
      opened = facts;
    },
  });
  const file = owner.open(PATH);
  for (const text of ["one", "two", "three"]) await file.write((tx) => void tx.query(INSERT).run(text, 1));
  await owner.stop();
  const [first, second, third] = pieces.slice(-3);
  if (first === undefined || second === undefined || third === undefined) throw new Error("there are no commits");
  const made = (options: { id?: string; commitPage?: number } = {}) =>
    new CommitRows({ id: opened.file, commitPage: opened.page, ...options, last: { number: 0, nonce: 0 } });
  const rows = made();
  expect(rows.take(first)).toHaveLength(1);
  expect(rows.take(first)).toHaveLength(0);
  expect(() => rows.take(third)).toThrow(BrokenCommits);
  expect(() => made({ id: "another" }).take(first)).toThrow(BrokenCommits);
  expect(() => made({ commitPage: opened.page + 1_000 }).take(first)).toThrow(BrokenCommits);
});
