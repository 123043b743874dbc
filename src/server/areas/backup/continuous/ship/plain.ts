import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SECRETS_FILE, scanFiles } from "../../layout.ts";
import { stampOf } from "../capture/capture.ts";
import type { FileStamp } from "../capture/records.ts";
import type { Archive } from "../format/archive.ts";
import { type PlainVersion, plainKey } from "../format/manifest.ts";
import type { Store } from "../store/store.ts";
import type { Cut } from "./tracked-file.ts";

/** Plain files beside the databases, and the folder with mail of development. */
const NAMES = [SECRETS_FILE, "webhooks.json", "token-keys.json"];
const OUTBOX = "outbox";

/** Stores the files that are no databases, whole, whenever they have changed. */
export class PlainFiles {
  readonly #deps: { dataDirectory: string; store: Store; archive: Archive };
  readonly #known = new Map<string, FileStamp>();

  constructor(deps: { dataDirectory: string; store: Store; archive: Archive }) {
    this.#deps = deps;
  }

  /** Stores what has changed since the last call. Returns the new versions. */
  async collect({ at, place }: Cut): Promise<PlainVersion[]> {
    const { dataDirectory, store, archive } = this.#deps;
    const versions: PlainVersion[] = [];
    const current = currentVersions(archive.manifest.plain);
    const present = new Set(this.#paths());
    for (const path of present) {
      const file = join(dataDirectory, path);
      const stamp = stampOf(file);
      const known = this.#known.get(path);
      if (stamp === null || (known?.mtimeMs === stamp.mtimeMs && known.bytes === stamp.bytes)) continue;
      const bytes = new Uint8Array(readFileSync(file));
      const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
      if (current.get(path) !== sha256) {
        await store.put(plainKey(sha256), bytes);
        versions.push({ path, sha256, at, place });
      }
      this.#known.set(path, stamp);
    }
    for (const [path, sha256] of current) {
      if (sha256 === null || present.has(path)) continue;
      this.#known.delete(path);
      versions.push({ path, sha256: null, at, place });
    }
    return versions;
  }

  *#paths(): Generator<string> {
    const { dataDirectory } = this.#deps;
    for (const name of NAMES) if (existsSync(join(dataDirectory, name))) yield name;
    if (!existsSync(join(dataDirectory, OUTBOX))) return;
    for (const { path, kind } of scanFiles(dataDirectory, OUTBOX)) if (kind === "plain") yield path;
  }
}

/** Returns the last version of each file. */
export function currentVersions(versions: readonly PlainVersion[]): Map<string, string | null> {
  const current = new Map<string, string | null>();
  for (const { path, sha256 } of versions) current.set(path, sha256);
  return current;
}
