import { createReadStream, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "../../../../../kernel/errors.ts";
import { scanFiles } from "../../layout.ts";
import type { Archive } from "../format/archive.ts";
import { contentKey } from "../format/manifest.ts";
import type { Store } from "../store/store.ts";

/** Contents that are stored at the same time. */
const AT_ONCE = 4;
const FOLDER = "storage";
const KEYS = "contents/";
const HASH_CHARACTERS = 64;

/** Returns the path in the data directory of the content with this key. */
export const pathOfContent = (key: string): string => `${FOLDER}/${key.slice(KEYS.length, -HASH_CHARACTERS - 1)}`;

/** Returns the hash of the content with this key. */
export const hashOfContent = (key: string): string => key.slice(-HASH_CHARACTERS);

/** Stores the contents of files in buckets, which never change, each once. */
export class Contents {
  readonly #deps: { dataDirectory: string; store: Store; archive: Archive };
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  /** Time and size of each content that is not in the store yet. */
  readonly #late = new Map<string, { since: number; bytes: number }>();
  #failure: string | null = null;

  constructor(deps: { dataDirectory: string; store: Store; archive: Archive }) {
    this.#deps = deps;
  }

  /** Contents that are not in the store yet. */
  get missing(): string[] {
    return [...this.#waiting, ...this.#running.keys()];
  }

  /** Returns how far the store is behind: time of the oldest content that it lacks, and bytes of all of them; null: it has them all. */
  get lag(): { since: number; bytes: number } | null {
    if (this.#late.size === 0) return null;
    const lag = { since: Number.POSITIVE_INFINITY, bytes: 0 };
    for (const { since, bytes } of this.#late.values()) {
      lag.since = Math.min(lag.since, since);
      lag.bytes += bytes;
    }
    return lag;
  }

  /** Takes note of a content that was stored locally. */
  add(path: string, at: number): void {
    if (!this.#late.has(path)) {
      const file = statSync(join(this.#deps.dataDirectory, path), { throwIfNoEntry: false });
      this.#late.set(path, { since: at, bytes: file?.size ?? 0 });
    }
    if (!this.#running.has(path)) this.#waiting.add(path);
    this.#start();
  }

  /** Waits for contents for this time at most. Errors: one could not be stored; it is tried again. */
  async settle(waitMs: number): Promise<void> {
    this.#failure = null;
    this.#start();
    const deadline = Bun.sleep(waitMs).then(() => "over");
    while (this.#running.size > 0) {
      if ((await Promise.race([deadline, Promise.race(this.#running.values())])) === "over") break;
      if (this.#failure !== null) break;
    }
    if (this.#failure !== null) throw new Error(this.#failure);
  }

  /** Compares the local contents with the store: adds those that it lacks, and notes those that are gone. */
  async reconcile(now: number): Promise<void> {
    const { dataDirectory, store, archive } = this.#deps;
    const gone = new Map(archive.manifest.gone);
    const stored = new Set<string>();
    for await (const { key } of store.list(KEYS)) {
      const path = pathOfContent(key);
      stored.add(path);
      if (existsSync(join(dataDirectory, path))) gone.delete(key);
      else if (!gone.has(key)) gone.set(key, now);
    }
    archive.manifest.gone = [...gone];
    for (const { path, kind } of scanFiles(dataDirectory, FOLDER)) {
      if (kind === "object" && !stored.has(path)) this.add(path, now);
    }
  }

  #start(): void {
    for (const path of this.#waiting) {
      if (this.#running.size >= AT_ONCE || this.#failure !== null) return;
      this.#waiting.delete(path);
      const stored = this.#store(path)
        .then(() => void this.#late.delete(path))
        .catch((cause: unknown) => {
          // One that the server has removed is needed by no later moment.
          if (!existsSync(join(this.#deps.dataDirectory, path))) {
            this.#late.delete(path);
            return;
          }
          this.#waiting.add(path);
          this.#failure = reasonOf(cause);
        })
        .finally(() => {
          this.#running.delete(path);
          this.#start();
        });
      this.#running.set(path, stored);
    }
  }

  async #store(path: string): Promise<void> {
    const { dataDirectory, store } = this.#deps;
    const file = join(dataDirectory, path);
    const hash = new Bun.CryptoHasher("sha256");
    for await (const chunk of createReadStream(file)) hash.update(chunk);
    await store.putFile(contentKey(path, hash.digest("hex")), file);
  }
}
