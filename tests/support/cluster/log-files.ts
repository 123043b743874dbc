import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type CommitContent, decodeContent, type PartContent } from "../../../src/server/cluster/entries/content.ts";
import { askLog } from "../../../src/server/cluster/postgres/log-channel.ts";
import type { LogEntry } from "../../../src/server/cluster/protocol/statements.ts";
import type { TestPostgres } from "./postgres.ts";

// Contents of files as a log leads to them: an independent reading, without SQLite and without the code of followers.

/** A file that the log describes. */
export interface LogFile {
  content: Uint8Array;
  /** Numbers of its commits. */
  numbers: number[];
}

export async function entriesOf(postgres: TestPostgres): Promise<readonly LogEntry[]> {
  const connection = await postgres.connect();
  const { entries } = await askLog(connection, { kind: "read", from: 0, limit: 10_000_000 });
  connection.close();
  return entries;
}

/** Reads the log, and returns the files that it leads to, by path. Each commit has to follow the one before. */
export async function filesOfLog(postgres: TestPostgres): Promise<Map<string, LogFile>> {
  const files = new Map<string, LogFile>();
  const paths = new Map<string, string>();
  const last = new Map<string, number>();
  const parts = new Map<string, PartContent[]>();
  for (const row of (await entriesOf(postgres)).flatMap(({ body }) => body)) {
    const content = decodeContent(row.content);
    const path = paths.get(row.file) ?? "";
    const file = files.get(path);
    switch (content.kind) {
      case "created":
        paths.set(row.file, content.path);
        files.set(content.path, { content: content.content, numbers: [] });
        last.set(row.file, row.number);
        break;
      case "removed":
        files.delete(content.path);
        paths.delete(row.file);
        break;
      case "part":
        parts.set(row.file, [...(parts.get(row.file) ?? []), content]);
        break;
      case "commit": {
        if (file === undefined) throw new Error(`a commit of a file that was not created: ${row.file}`);
        expect([path, content.previous.number]).toEqual([path, last.get(row.file) ?? -1]);
        const before = parts.get(row.file) ?? [];
        expect(before.length).toBe(content.parts);
        parts.delete(row.file);
        for (const one of [...before, content]) write(file, one, content.pages);
        file.numbers.push(content.number);
        last.set(row.file, content.number);
        break;
      }
      default:
        throw new Error(`${content.kind} was not expected`);
    }
  }
  return files;
}

function write(file: LogFile, { pageBytes, numbers, images }: PartContent | CommitContent, pages: number): void {
  const grown = new Uint8Array(pages * pageBytes);
  grown.set(file.content.subarray(0, grown.byteLength));
  for (const [index, number] of numbers.entries()) {
    if (number <= pages)
      grown.set(images.subarray(index * pageBytes, (index + 1) * pageBytes), (number - 1) * pageBytes);
  }
  file.content = grown;
}

/** Returns what the log has of each file, by path. */
export async function loggedOf(
  postgres: TestPostgres,
): Promise<Map<string, { id: string; number: number; nonce: number }>> {
  const states = new Map<string, { id: string; number: number; nonce: number }>();
  const paths = new Map<string, string>();
  for (const { file: id, content } of (await entriesOf(postgres)).flatMap(({ body }) => body)) {
    const decoded = decodeContent(content);
    if (decoded.kind === "created") {
      paths.set(id, decoded.path);
      states.set(decoded.path, { id, number: 0, nonce: 0 });
    } else if (decoded.kind === "commit") {
      states.set(paths.get(id) ?? "", { id, number: decoded.number, nonce: decoded.nonce });
    }
  }
  return states;
}

/** Compares the closed databases of a directory with those of the log. Returns their paths. */
export async function expectSameFiles(postgres: TestPostgres, dataDirectory: string): Promise<string[]> {
  const files = await filesOfLog(postgres);
  const databases = [...new Bun.Glob("**/*.db").scanSync({ cwd: dataDirectory })].filter(
    (path) => !path.includes(".lock"),
  );
  expect([...files.keys()].toSorted()).toEqual(databases.toSorted());
  for (const path of databases) {
    const here = new Uint8Array(readFileSync(join(dataDirectory, path)));
    const there = files.get(path)?.content ?? new Uint8Array();
    expect([path, Bun.hash(here) === Bun.hash(there), here.byteLength]).toEqual([path, true, there.byteLength]);
    using sqlite = Database.deserialize(inMemory(there));
    expect(sqlite.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  }
  return databases;
}

/** A database in memory cannot be in WAL mode. */
function inMemory(content: Uint8Array): Uint8Array {
  const copy = content.slice();
  copy[18] = 1;
  copy[19] = 1;
  return copy;
}
