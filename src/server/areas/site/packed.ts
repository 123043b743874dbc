import type { PackedSite } from "../../config/loading/product.ts";
import type { SiteFile, SiteFiles } from "./files.ts";

/** Returns the files that `platform build` put into the executable. */
export function packedFiles({ file, files, modifiedMs }: PackedSite): SiteFiles {
  const pack = Bun.file(file);
  const found = new Map<string, SiteFile | "directory">([["", "directory"]]);
  for (const [path, { start, size, hash, contentType }] of Object.entries(files)) {
    for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
      found.set(path.slice(0, slash), "directory");
    }
    const blob = () => pack.slice(start, start + size, contentType);
    found.set(path, { contentType, size, etag: `"${hash}"`, modifiedMs, blob });
  }
  return { find: (path) => found.get(path) ?? null };
}
