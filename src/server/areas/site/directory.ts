import { realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { BoundedMap } from "../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import type { SiteFile, SiteFiles } from "./files.ts";
import { RESOLVED_MAX, RESOLVED_MS } from "./limits.ts";

/** Where a path led when it was looked up; null: to nothing, or out of the directory. */
interface Place {
  lookedUpAt: Millis;
  path: string | null;
}

/** The files below a directory. A symbolic link is followed where it leads to what is inside. */
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

/** The path without symbolic links. The directory may be such a link itself. */
function realPlace(directory: string, path: string): string | null {
  try {
    const root = realpathSync(directory);
    const real = realpathSync(join(root, path));
    return real === root || real.startsWith(root + sep) ? real : null;
  } catch {
    // Nothing there, or nothing that may be read.
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
  // To open a pipe would wait for its other end.
  if (!facts.isFile()) return null;
  const file = Bun.file(path);
  return {
    contentType: file.type,
    size: Number(facts.size),
    // Not the time of modification: builds that can be reproduced give every file the same.
    etag: `"${facts.size.toString(36)}-${facts.ctimeNs.toString(36)}"`,
    modifiedMs: Number(facts.mtimeMs),
    blob: () => file,
  };
}
