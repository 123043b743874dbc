import { closeSync, openSync, readdirSync, readFileSync, realpathSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { directoryFiles } from "../../areas/site/directory.ts";
import type { PackedFile, PackedSite } from "../../config/loading/product.ts";

/** Packs the files that the site at `directory` serves into `file`, one after another. */
export function packSite(directory: string, file: string): PackedSite {
  const served = directoryFiles(directory, systemClock);
  const files: Record<string, PackedFile> = {};
  const visited = new Set<string>();
  const output = openSync(file, "w");
  let start = 0;
  const add = (path: string): void => {
    const found = served.find(path);
    if (found === null) return;
    if (found !== "directory") {
      const content = readFileSync(join(directory, path));
      for (let written = 0; written < content.length; ) written += writeSync(output, content, written);
      const hash = new Bun.CryptoHasher("sha256").update(content).digest("base64url").slice(0, HASH_CHARACTERS);
      files[path] = { start, size: content.length, hash, contentType: found.contentType };
      start += content.length;
      return;
    }
    // A symbolic link may lead outside the directory.
    const real = realpathSync(join(directory, path));
    if (visited.has(real)) return;
    visited.add(real);
    for (const name of readdirSync(real).sort()) {
      // The same rule as in `sitePath`.
      if (name.startsWith(".") && !(path === "" && name === ".well-known")) continue;
      add(path === "" ? name : `${path}/${name}`);
    }
  };
  try {
    add("");
  } finally {
    closeSync(output);
  }
  return { file, modifiedMs: systemClock.now(), files };
}

/** The length of a hash: 96 bits, which no two versions of a file share. */
const HASH_CHARACTERS = 16;
