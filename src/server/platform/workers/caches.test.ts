import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const server = resolve(import.meta.dir, "../..");
/** Expressions that create something that may outlive a request. */
const CACHE = /new (?:BoundedMap|WeakMap|LRUCache)\b/g;

/** The reasons why what a worker keeps is never older than what it reads. */
type Reason =
  /** It depends on the config, on a signature, on the text of a query or a condition, or on the place of a file of the site: nothing that a write changes. */
  | "fact"
  /** It is used under the number of the file's last commit, as read in the same snapshot. */
  | "commit"
  /** It is used while the shared page counts no commit to its file. */
  | "page"
  /** It ends with its request or its connection, or has no part in any answer. */
  | "request"
  /** Only the process that writes fills it. */
  | "writer";

/** Every cache in the modules that a worker loads, by file in the order of their lines. */
const CACHES: Readonly<Record<string, readonly Reason[]>> = {
  "../kernel/records/filter-common.ts": ["fact"],
  "../kernel/time/time-zone.ts": ["fact"],
  "access/tokens.ts": ["fact"],
  "areas/auth/reading.ts": ["page"],
  "areas/rooms/state/state.ts": ["writer", "writer", "writer"],
  "areas/rooms/state/steps.ts": ["writer"],
  "areas/site/directory.ts": ["fact"],
  "areas/tables/embeddings/query-vectors.ts": ["writer"],
  "areas/tables/filters/sort.ts": ["fact"],
  "areas/tables/lookups/table-lookup.ts": ["fact", "fact", "fact"],
  "areas/tables/query/kept-lists.ts": ["commit"],
  "areas/tables/query/pages.ts": ["commit", "commit"],
  "areas/tables/query/search.ts": ["fact"],
  "areas/tables/records/namespaces.ts": ["fact", "fact"],
  "areas/tables/rules/calling.ts": ["fact", "writer"],
  "areas/tables/table-door.ts": ["request"],
  "areas/tables/tombstones/followers.ts": ["writer"],
  "db/readers/borrowed-files.ts": ["request"],
  "db/reads/statement-cache.ts": ["fact"],
  "http/http.ts": ["request"],
  "http/rate-limit.ts": ["writer"],
  "platform/workers/answering.ts": ["request", "request"],
  "sockets/socket-line.ts": ["request"],
  "sockets/socket-server.ts": ["request", "request", "request"],
};

/** Returns the modules that `entry` loads, without those of which it imports types alone. */
function loadedBy(entry: string): string[] {
  const loaded = new Set<string>();
  const waiting = [entry];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (loaded.has(path) || !path.endsWith(".ts") || !existsSync(path)) continue;
    loaded.add(path);
    const text = readFileSync(path, "utf8");
    for (const [, target = ""] of text.matchAll(/^(?:import|export) (?!type )[^;]*?"(\.[^"]+)"/gms))
      waiting.push(join(dirname(path), target));
  }
  return [...loaded];
}

test("[WK15] each cache that a worker loads is named, with the reason why it is never older than its reads", () => {
  const found = loadedBy(join(import.meta.dir, "worker.ts")).flatMap((path) => {
    const count = readFileSync(path, "utf8").match(CACHE)?.length ?? 0;
    return count === 0 ? [] : [[relative(server, path), count] as const];
  });
  const named = Object.entries(CACHES).map(([path, reasons]) => [path, reasons.length] as const);
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(named));
});
