import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { Random } from "../../support/random.ts";
import type { FileCall } from "./trace.ts";

/** A change of a file's content that no sync has covered yet. `line`: of the trace. */
type Change =
  | { kind: "write"; line: number; offset: number; data: Buffer }
  | { kind: "truncate"; line: number; size: number };

/** A file, whatever its names. */
interface File {
  durable: Content;
  pending: Change[];
}

/** A name that a directory gets or, with null, loses. */
interface Naming {
  line: number;
  path: string;
  file: File | null;
}

const SECTOR_BYTES = 512;

/**
 * A disk that keeps less than any real one has to: what was written and not synced is there or not, each write by itself, in any
 * order and in part; names that were made or removed are there for certain once their directory was synced. New directories are
 * there at once.
 */
export class SimulatedDisk {
  readonly #root: string;
  /** Files as the server sees them. */
  readonly #names = new Map<string, File>();
  readonly #durableNames = new Map<string, File>();
  /** Entries by directory. */
  readonly #namings = new Map<string, Naming[]>();
  readonly #directories = new Set<string>();
  /** Syncs under way, by the line with which they began. */
  readonly #syncing = new Map<number, { path: string; file: File | null }>();
  /** Renames under way: the name that a file has by the name that it gets. */
  readonly #renaming = new Map<string, string>();
  /** Position of the next write without an offset. */
  readonly #positions = new Map<string, number>();

  constructor(root: string) {
    this.#root = root;
  }

  apply(call: FileCall, line: number): void {
    switch (call.kind) {
      case "open":
        this.#positions.set(call.path, 0);
        if (!this.#names.has(call.path)) {
          if (call.creates) this.#name(call.path, { durable: new Content(), pending: [] }, line);
        } else if (call.truncates) this.#change(call.path, { kind: "truncate", line, size: 0 });
        break;
      case "write": {
        const { path, data } = call;
        const offset = call.offset ?? this.#positions.get(path) ?? 0;
        if (call.offset === null) this.#positions.set(path, offset + data.length);
        this.#change(path, { kind: "write", line, offset, data });
        break;
      }
      case "truncate":
        this.#change(call.path, { kind: "truncate", line, size: call.size });
        break;
      case "syncing":
        this.#syncing.set(line, { path: call.path, file: this.#fileAt(call.path) });
        break;
      case "synced":
        this.#sync(line);
        break;
      case "renaming":
        this.#renaming.set(call.to, call.from);
        break;
      case "rename":
      case "link": {
        this.#renaming.delete(call.to);
        const file = this.#names.get(call.from);
        if (file === undefined) return;
        this.#name(call.to, file, line);
        if (call.kind === "rename") this.#name(call.from, null, line);
        break;
      }
      case "remove":
        this.#name(call.path, null, line);
        break;
      case "directory":
        this.#directories.add(call.path);
        break;
    }
  }

  #change(path: string, change: Change): void {
    this.#fileAt(path)?.pending.push(change);
  }

  #fileAt(path: string): File | null {
    return this.#names.get(path) ?? this.#names.get(this.#renaming.get(path) ?? "") ?? null;
  }

  #name(path: string, file: File | null, line: number): void {
    const naming = { line, path, file };
    keep(this.#names, naming);
    const directory = dirname(path);
    const pending = this.#namings.get(directory);
    if (pending === undefined) this.#namings.set(directory, [naming]);
    else pending.push(naming);
  }

  /** Keeps what a sync covers: a file's content, a directory's names. Work that began after the sync is not covered by it. */
  #sync(began: number): void {
    const { path = "", file = null } = this.#syncing.get(began) ?? {};
    this.#syncing.delete(began);
    if (file !== null) {
      for (const change of file.pending) if (change.line < began) file.durable.apply(change);
      file.pending = file.pending.filter(({ line }) => line >= began);
    }
    const namings = this.#namings.get(path) ?? [];
    for (const naming of namings) if (naming.line < began) keep(this.#durableNames, naming);
    this.#namings.set(
      path,
      namings.filter(({ line }) => line >= began),
    );
  }

  /** Writes what the disk has after a power cut at this moment below `target`. */
  cut(target: string, random: Random): void {
    const names = new Map(this.#durableNames);
    for (const namings of this.#namings.values()) {
      // A file system keeps the order of the changes of one directory.
      for (const naming of namings.slice(0, random.below(namings.length + 1))) keep(names, naming);
    }
    const place = (path: string): string => join(target, relative(this.#root, path));
    for (const directory of [this.#root, ...this.#directories]) mkdirSync(place(directory), { recursive: true });
    for (const [path, { durable, pending }] of names) {
      const content = durable.copy();
      for (const change of survivors(pending, random)) content.apply(change);
      mkdirSync(dirname(place(path)), { recursive: true });
      writeFileSync(place(path), content.bytes, { mode: 0o600 });
    }
  }
}

function keep(names: Map<string, File>, { path, file }: Naming): void {
  if (file === null) names.delete(path);
  else names.set(path, file);
}

/** The changes that a cut leaves: all, none, or some of them, of which the writes may be torn. */
function survivors(pending: readonly Change[], random: Random): Change[] {
  const kind = random.below(3);
  if (kind === 0) return [...pending];
  if (kind === 1) return [];
  return pending
    .filter(() => random.chance(0.5))
    .map((change) => {
      if (change.kind === "truncate" || random.chance(0.7)) return change;
      const sectors = random.below(Math.ceil(change.data.length / SECTOR_BYTES) + 1);
      return { ...change, data: change.data.subarray(0, sectors * SECTOR_BYTES) };
    });
}

class Content {
  #buffer: Buffer;
  #size: number;

  constructor(bytes: Buffer = Buffer.alloc(0)) {
    this.#buffer = bytes;
    this.#size = bytes.length;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#size);
  }

  copy(): Content {
    return new Content(Buffer.from(this.bytes));
  }

  apply(change: Change): void {
    const end = change.kind === "truncate" ? change.size : change.offset + change.data.length;
    if (end > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(end, 2 * this.#buffer.length));
      this.bytes.copy(larger);
      this.#buffer = larger;
    }
    if (change.kind === "write") {
      change.data.copy(this.#buffer, change.offset);
      this.#size = Math.max(this.#size, end);
    } else {
      // What is cut off reads as zeros when the file grows again.
      if (end < this.#size) this.#buffer.fill(0, end, this.#size);
      this.#size = end;
    }
  }
}
