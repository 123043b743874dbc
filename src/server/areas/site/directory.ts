import { realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { BoundedMap } from "../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import type { SiteFile, SiteFiles } from "./files.ts";

/** The time before a path is resolved again: a link may point to another release. */
const RESOLVED_MS = 1_000;
/** The maximum number of cached paths. */
const RESOLVED_MAX = 10_000;

/** The cached result of resolving a path; null: it leads to nothing, or out of the directory. */
interface Place {
  lookedUpAt: Millis;
  path: string | null;
}

/** Returns the files below a directory. A symbolic link is followed if its target is inside. */
export function directoryFiles(directory: string, clock: Clock): SiteFiles {
  const places = new BoundedMap<string, Place>(RESOLVED_MAX);
  const placeOf = (path: string): string | null => {
    const now = clock.now();
    const known = places.get(path);
    const age = known === undefined ? RESOLVED_MS : now - known.lookedUpAt;
    if (known !== undefined && age >= 0 && age < RESOLVED_MS) return known.path;
    const found = realPlace(directory, path);
    places.set(path, { lookedUpAt: now, path: found });
    return found;
  };
  return {
    find(path) {
      const place = placeOf(path);
      return place === null ? null : described(place);
    },
  };
}

/** Resolves the path's symbolic links. The directory may be such a link itself. */
function realPlace(directory: string, path: string): string | null {
  try {
    const root = realpathSync(directory);
    const real = realpathSync(join(root, path));
    return real === root || real.startsWith(root + sep) ? real : null;
  } catch {
    // The file does not exist, or is unreadable.
    return null;
  }
}

function factsOf(path: string) {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}

function described(path: string): SiteFile | "directory" | null {
  const facts = factsOf(path);
  if (facts === null) return null;
  if (facts.isDirectory()) return "directory";
  // Opening a pipe would block until its other end opens.
  if (!facts.isFile()) return null;
  const file = Bun.file(path);
  return {
    contentType: file.type,
    size: Number(facts.size),
    // The change time, not the modification time: reproducible builds give every file the same one.
    etag: `"${facts.size.toString(36)}-${facts.ctimeNs.toString(36)}"`,
    modifiedMs: Number(facts.mtimeMs),
    blob: () => file,
  };
}
