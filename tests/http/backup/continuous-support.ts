import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, temporaryDirectory } from "../../support/index.ts";

export { differences } from "../../support/page-differences.ts";

import { until } from "../storage/storage-support.ts";
import { runCommand } from "./backup-support.ts";

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
 * Resolves when a pass has stored everything that was committed before the call. The first one that ends may have begun before: the
 * second one has all.
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

export const numbersIn = (directory: string, path: string, table: string): number[] => {
  using sqlite = new Database(join(directory, `${path}.db`), { readonly: true });
  return sqlite
    .query<{ n: number }, []>(`SELECT n FROM "${table}" ORDER BY n`)
    .all()
    .map(({ n }) => n);
};

export const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

export type Body = JsonObject;
