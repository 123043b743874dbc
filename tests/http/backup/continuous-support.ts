import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, temporaryDirectory } from "../../support/index.ts";
import { until } from "../storage/storage-support.ts";
import { runCommand } from "./backup-support.ts";

const PAGE_BYTES = 4096;
export interface History {
  from: string;
  to: string;
  gaps: { from: string; to: string; file: string; reason: string }[];
  bytes: number;
  verifiedAt: string | null;
  files: { file: string; from: string; to: string; bytes: number }[];
}

/** Returns what `history --json` says. */
export async function historyOf(place: string): Promise<History> {
  const { code, stdout, stderr } = await runCommand(["history", place, "--json"]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as History;
}

/** Restores into a new directory. Returns its path. */
export async function restored(place: string, ...options: string[]): Promise<string> {
  const data = join(temporaryDirectory(), "copy");
  const { code, stderr } = await runCommand(["restore", place, "--data", data, ...options]);
  if (code !== 0) throw new Error(stderr);
  return data;
}

export interface Continuous {
  ok: boolean;
  lagMs: number;
  lagBytes: number;
  lastAt: string | null;
  verifiedAt: string | null;
  verified: boolean | null;
  uploads: number;
  failures: number;
  message: string | null;
}

export async function continuousOf(platform: TestPlatform): Promise<Continuous> {
  const { body } = await platform.service.get<{ checks: { continuous: Continuous } }>("/api/health?full");
  return body.checks.continuous;
}

/**
 * Resolves when a pass has stored everything that was committed before the call. The first one that ends may have begun before, and files
 * of d1 are not counted in the lag: the second one has all.
 */
export async function untilStored(platform: TestPlatform): Promise<void> {
  const since = Date.now();
  const ended = new Set<string>();
  await until(
    "everything is stored",
    async () => {
      const { lagMs, lastAt } = await continuousOf(platform);
      if (lastAt !== null && Date.parse(lastAt) > since) ended.add(lastAt);
      return lagMs === 0 && ended.size >= 2;
    },
    40_000,
  );
}

/** Resolves when two passes have ended: the second one has begun after the call. */
export async function untilPassed(platform: TestPlatform): Promise<void> {
  const since = Date.now();
  const ended = new Set<string>();
  await until(
    "two passes have ended",
    async () => {
      const { lastAt } = await continuousOf(platform);
      if (lastAt !== null && Date.parse(lastAt) > since) ended.add(lastAt);
      return ended.size >= 2;
    },
    40_000,
  );
}

/** Resolves when every moment can be restored, and returns the first. */
export async function untilWhole(place: string): Promise<History> {
  let history: History | null = null;
  await until(
    "the first copies are stored",
    async () => {
      history = await historyOf(place).catch(() => null);
      return history !== null;
    },
    40_000,
  );
  // `until` ends when it is there.
  return history as unknown as History;
}

/**
 * Names the pages in which a restored database differs from the file of a stopped server. Pages that are
 * free are not counted.
 */
export function differences(live: string, copy: string): number[] {
  if (!existsSync(copy)) return [0];
  // The last connection moves what a crash has left in the WAL.
  if (existsSync(`${live}-wal`)) {
    using last = new Database(live, { readwrite: true, create: false });
    last.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
  }
  const [one, other] = [live, copy].map((path) => readFileSync(path));
  if (one === undefined || other === undefined || one.byteLength !== other.byteLength) return [0];
  const ignored = new Set(freePages(one));
  const found: number[] = [];
  for (let start = 0; start < one.byteLength; start += PAGE_BYTES) {
    const number = start / PAGE_BYTES + 1;
    if (ignored.has(number)) continue;
    if (!one.subarray(start, start + PAGE_BYTES).equals(other.subarray(start, start + PAGE_BYTES))) found.push(number);
  }
  return found;
}

const FIRST_TRUNK_OFFSET = 32;

function freePages(file: Buffer): number[] {
  const pages: number[] = [];
  for (let trunk = file.readUInt32BE(FIRST_TRUNK_OFFSET); trunk !== 0; ) {
    const start = (trunk - 1) * PAGE_BYTES;
    pages.push(trunk);
    const count = file.readUInt32BE(start + 4);
    for (let leaf = 0; leaf < count; leaf++) pages.push(file.readUInt32BE(start + 8 + leaf * 4));
    trunk = file.readUInt32BE(start);
  }
  return pages;
}

export const numbersIn = (directory: string, path: string, table: string): number[] => {
  using sqlite = new Database(join(directory, `${path}.db`), { readonly: true });
  return sqlite
    .query<{ n: number }, []>(`SELECT n FROM "${table}" ORDER BY n`)
    .all()
    .map(({ n }) => n);
};

export const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

export type Body = JsonObject;
