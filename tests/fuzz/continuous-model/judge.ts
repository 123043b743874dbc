import { Archive, loadArchive } from "../../../src/server/areas/backup/continuous/format/archive.ts";
import { readContainer } from "../../../src/server/areas/backup/continuous/format/container.ts";
import { decodeEntries } from "../../../src/server/areas/backup/continuous/format/entries.ts";
import type { CopyDescription, StoredFile } from "../../../src/server/areas/backup/continuous/format/manifest.ts";
import { applyDifference, hashText, pageHash } from "../../../src/server/areas/backup/continuous/format/pages.ts";
import { filesAt } from "../../../src/server/areas/backup/continuous/restore/databases.ts";
import { momentOf, rangeOf } from "../../../src/server/areas/backup/continuous/restore/moment.ts";
import { applySources, type Wanted } from "../../../src/server/areas/backup/continuous/restore/sources.ts";
import type { Store } from "../../../src/server/areas/backup/continuous/store/store.ts";
import type { Random } from "../../support/random.ts";
import { areEqual, PAGE_BYTES, type Pages } from "./simulated-file.ts";
import type { SimulatedServer } from "./simulated-server.ts";

class Wrong extends Error {}

type Restored = Map<string, { pages: Pages; file: StoredFile; base: StoredFile["fulls"][number] }>;

interface Target extends Wanted {
  file: StoredFile;
  /** null: its base has not come yet. */
  hashes: Pages | null;
}

/**
 * Reads a moment by what docs/continuous-format.md says, in memory: with merged objects, and from the segments alone, which has to be
 * the same.
 */
async function restore(store: Store, archive: Archive, place: number | null): Promise<Restored> {
  const restored = await restoreBy(store, archive, place);
  const alone = await restoreBy(store, new Archive({ ...archive.manifest, merged: [] }), place);
  for (const [path, { pages }] of alone) {
    const other = restored.get(path)?.pages;
    if (other === undefined || !areEqual(other, pages)) throw new Wrong(`merged objects make another state of ${path}`);
  }
  return restored;
}

export async function restoreBy(store: Store, archive: Archive, place: number | null): Promise<Restored> {
  const byId = new Map<string, Target>();
  for (const file of filesAt(archive, place)) {
    const base = file.fulls.findLast((copy) => place === null || copy.place <= place);
    if (base === undefined) throw new Wrong(`${file.path} has no copy`);
    const target = { file, base, place, hashes: base.isSegment ? null : await readCopy(store, base) };
    for (const id of [file.id, ...file.formerIds]) byId.set(id, target);
  }
  const { manifest } = archive;
  await applySources({
    store,
    manifest,
    targets: byId,
    apply: (name, block, of) => apply(name, block, of),
    onProgress() {},
  });
  const restored: Restored = new Map();
  for (const { file, base, hashes: pages } of byId.values()) {
    if (pages === null) throw new Wrong(`${file.path} has no base`);
    restored.set(file.path, { pages, file, base });
  }
  return restored;
}

function apply(name: string, block: Uint8Array<ArrayBuffer>, target: Target): void {
  for (const { head, pages } of decodeEntries(name, block)) {
    const { base, place, hashes: former } = target;
    const isBase = head.kind === "full" && head.place === base.place && head.number === base.number;
    if (place !== null && head.place > place) continue;
    if (former === null ? !isBase : head.place <= base.place) continue;
    const left = head.kind === "full" ? [] : (former ?? []).slice(0, head.merged?.least ?? head.pages);
    const next = Array.from({ length: head.pages }, (_, index) => left[index] ?? new Uint8Array(PAGE_BYTES));
    for (const [index, [page, baseHash, result]] of head.changed.entries()) {
      const content = pages.slice(index * PAGE_BYTES, (index + 1) * PAGE_BYTES);
      if (baseHash !== null) applyDifference(content, next[page - 1] ?? new Uint8Array(PAGE_BYTES));
      if (hashText(pageHash(page, content)) !== result) throw new Wrong(`${head.number} of ${name}: page ${page}`);
      next[page - 1] = content;
    }
    target.hashes = next;
  }
}

async function readCopy(
  store: Store,
  { key, sha256 }: StoredFile["fulls"][number],
): Promise<Uint8Array<ArrayBuffer>[]> {
  const bytes = await store.read(key);
  if (bytes === null) throw new Wrong(`${key} is missing`);
  const copy = readContainer<CopyDescription>(key, bytes);
  if (copy.sha256 !== sha256) throw new Wrong(`${key} is another one`);
  const content = Buffer.concat(copy.description.blocks.map((span) => Bun.zstdDecompressSync(copy.block(span))));
  const count = content.byteLength / PAGE_BYTES;
  return Array.from(
    { length: count },
    (_, n) => new Uint8Array(content.subarray(n * PAGE_BYTES, (n + 1) * PAGE_BYTES)),
  );
}

/** Requires each file of the newest moment to be a state that it had and that no failure has taken back. */
export async function requirePrefix(server: SimulatedServer): Promise<void> {
  const archive = await archiveOf(server);
  if (archive === null) return;
  for (const [path, { pages }] of await restore(server.store, archive, null)) {
    const own = server.happened.filter((one) => one.path === path && one.pages !== null);
    if (!own.some((one) => one.pages !== null && areEqual(one.pages, pages)))
      throw new Wrong(`the store has a state of ${path} that the file does not have`);
  }
}

/** Requires the newest moment to be what the databases hold. */
export async function requireLive(server: SimulatedServer): Promise<void> {
  const archive = await archiveOf(server);
  if (archive === null) throw new Wrong("nothing is stored");
  const restored = await restore(server.store, archive, null);
  const paths = new Set([...restored.keys(), ...server.files.keys()]);
  for (const path of paths) {
    const [live, stored] = [server.files.get(path), restored.get(path)];
    if (live === undefined) throw new Wrong(`${path} was removed, and a restore has it`);
    if (stored === undefined)
      throw new Wrong(
        `a restore lacks ${path} ${JSON.stringify(archive.manifest.files.filter((f) => f.path === path).map((f) => [f.id, f.removed, f.fulls.length]))}`,
      );
    if (!areEqual(live.pages, stored.pages)) throw new Wrong(`${path} is not as a restore has it`);
  }
}

/** Requires moments at random to be what was recorded of them. Returns how many were compared. */
export async function requireMoments(server: SimulatedServer, random: Random, count: number): Promise<number> {
  const archive = await archiveOf(server);
  if (archive === null || archive.manifest.from === null) return 0;
  const { store } = server;
  const range = rangeOf(store, archive);
  let compared = 0;
  for (let each = 0; each < count; each++) {
    const at = range.from + random.below(Math.max(1, range.to - range.from));
    const { place } = await momentOf(store, archive, at);
    if (place === null) throw new Wrong("a moment has no place");
    compared += compare(server, archive, place, await restore(store, archive, place));
  }
  return compared;
}

function compare(server: SimulatedServer, archive: Archive, place: number, restored: Restored): number {
  const last = server.happened.findLastIndex((one) => one.place <= place);
  const before = server.happened.slice(0, last + 1);
  const mixed = before.find((one) => one.place > place);
  if (mixed !== undefined) throw new Wrong(`the moment lacks a change of ${mixed.path} from before`);
  let compared = 0;
  for (const path of new Set(before.map((one) => one.path))) {
    if (isInGap(archive, path, place) || wasLostWhole(server, archive, { path, place })) continue;
    const own = before.filter((one) => one.path === path);
    const found = restored.get(path);
    if (found?.base.number === 0 && isFollowed(server, { path, place })) continue;
    const expected = own.at(-1)?.pages ?? null;
    if (expected === null ? found !== undefined : found === undefined || !areEqual(expected, found.pages))
      throw new Wrong(
        `${path} is not what it was at ${place}: ${found === undefined ? "missing" : found.pages.length}, expected ${expected?.length} ${JSON.stringify(archive.manifest.files.filter((f) => f.path === path).map((f) => [f.id, f.formerIds, f.removed, f.fulls.map((x) => x.place)]))}`,
      );
    compared++;
  }
  // A file without commits that was made while a pass ran may be found by it: it says nothing of its time.
  for (const [path, { base }] of restored)
    if (base.number !== 0 && !before.some((one) => one.path === path))
      throw new Wrong(`${path} was not there at ${place}`);
  return compared;
}

/**
 * Whether a file was removed by then, and another one got its name later. Files without commits are all alike and have no id yet: where a
 * crash takes the record of the removal, the other one is taken for it.
 */
function isFollowed({ happened }: SimulatedServer, { path, place }: { path: string; place: number }): boolean {
  const own = happened.filter((one) => one.path === path);
  return own.findLast((one) => one.place <= place)?.pages === null && own.some((one) => one.place > place);
}

/** Reports whether a file was made and removed between two passes of which a kill has taken everything: nothing says that it was. */
function wasLostWhole(server: SimulatedServer, archive: Archive, of: { path: string; place: number }): boolean {
  const { path, place } = of;
  const own = server.happened.filter((one) => one.path === path);
  const end = own.find((one) => one.place > place && one.pages === null);
  const made = own.findLast((one) => one.place <= place && one.pages === null)?.place ?? 0;
  if (end === undefined) return false;
  const stored = archive.manifest.files.filter((file) => file.path === path);
  return !stored.some(({ fulls }) => fulls.some((full) => full.place > made && full.place < end.place));
}

function isInGap({ manifest }: Archive, path: string, place: number): boolean {
  return manifest.gaps.some((gap) => gap.file === path && gap.fromPlace < place && place < gap.toPlace);
}

async function archiveOf({ store }: SimulatedServer): Promise<Archive | null> {
  store.mood = "well";
  return loadArchive(store);
}
