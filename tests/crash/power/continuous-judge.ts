import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { scanFiles } from "../../../src/server/areas/backup/layout.ts";
import { runCommand } from "../../http/backup/backup-support.ts";
import { differences, untilWhole } from "../../http/backup/continuous-support.ts";
import { temporaryDirectory } from "../../support/index.ts";
import { SimulatedDisk } from "./disk.ts";
import { configWith, random, record, writeAll } from "./load.ts";
import { RecordedStore } from "./store.ts";
import { tracedCalls } from "./trace.ts";

interface Commit {
  number: number;
  nonce: number;
}

/** Reads the commit that a database holds; null: it is not there, or holds none. */
function commitOf(path: string): Commit | null {
  if (!existsSync(path)) return null;
  using sqlite = new Database(path, { readwrite: true, create: false });
  const table = sqlite.query("SELECT 1 FROM sqlite_schema WHERE name = '_platform_commit'").get();
  return table === null ? null : sqlite.query<Commit, []>('SELECT number, nonce FROM "_platform_commit"').get();
}

/** Copies a database with its WAL, so that the cut stays as it is. */
function copied(data: string, path: string, target: string): string {
  const copy = join(target, path);
  mkdirSync(dirname(copy), { recursive: true });
  for (const ending of ["", "-wal"]) {
    if (existsSync(join(data, path + ending))) copyFileSync(join(data, path + ending), copy + ending);
  }
  return copy;
}

/** Names the databases of a restore that have another commit than the directory after the cut could lead to. */
function ahead(restored: string, data: string): string[] {
  const target = join(temporaryDirectory(), "live");
  return [...scanFiles(restored)].flatMap(({ path, kind }) => {
    if (kind !== "database") return [];
    const stored = commitOf(join(restored, path));
    if (stored === null || stored.number === 0) return [];
    const copy = copied(data, path, target);
    let live: Commit | null = null;
    try {
      live = commitOf(copy);
    } catch (cause) {
      return [`${path}: the store has commit ${stored.number}, and the directory cannot be read: ${cause}`];
    }
    if (live === null) return [`${path}: the store has commit ${stored.number}, and the directory none`];
    if (stored.number > live.number)
      return [`${path}: the store has commit ${stored.number}, the directory ${live.number}`];
    if (stored.number < live.number) return [];
    const pages = stored.nonce === live.nonce ? differences(copy, join(restored, path)) : [0];
    return pages.length === 0 ? [] : [`${path}: commit ${stored.number} differs in pages ${pages.join(", ")}`];
  });
}

/** Parts of a store that the data directory after a power cut lacks. */
export interface Cut {
  index: number;
  ahead: string[];
}

/**
 * Records a server that is backed up to another disk, under load, and cuts its power at moments at random. Returns the cuts after which
 * there was something to restore. Errors: a restore fails.
 */
export async function cutsUnderLoad(count: number, program?: readonly string[]): Promise<Cut[]> {
  const folder = join(temporaryDirectory(), "store");
  const to = JSON.stringify({ folder });
  const config = configWith(`backups: { continuous: { to: ${to}, everyMs: 250, verify: false } },`);
  const load = async (platform: Parameters<typeof writeAll>[0]): Promise<void> => {
    await untilWhole(folder);
    await writeAll(platform);
  };
  const { trace, root } = await record(load, program === undefined ? { config } : { config, program });
  const calls = [...tracedCalls(trace, root)];
  const store = new RecordedStore(trace, folder);
  const moments = new Set(Array.from({ length: count }, () => random.below(calls.length)));
  const disk = new SimulatedDisk(root);
  const cuts: Cut[] = [];
  for (const [index, call] of calls.entries()) {
    if (call.kind !== "sent") disk.apply(call, call.line);
    if (!moments.has(index)) continue;
    const directory = temporaryDirectory();
    const data = join(directory, "data");
    const objects = join(directory, "store");
    const copy = join(directory, "copy");
    disk.cut(data, random);
    if (!store.at(call.line, objects)) continue;
    const { code, stderr } = await runCommand(["restore", objects, "--data", copy]);
    // Before the first copies are complete there is nothing to restore.
    if (code !== 0 && stderr.includes("is not complete yet")) continue;
    if (code !== 0) throw new Error(`after call ${index}: ${stderr}`);
    cuts.push({ index, ahead: ahead(copy, data) });
    rmSync(directory, { recursive: true });
  }
  return cuts;
}
