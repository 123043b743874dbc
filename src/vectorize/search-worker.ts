import { Database } from "bun:sqlite";
import { loadVectorExtension } from "./extension.ts";
import { MMAP_MAX_BYTES } from "./limits.ts";
import { matchesJson, vectorsJson } from "./result-json.ts";
import type { SearchJob } from "./types.ts";

/** Searches on connections of its own, beside the server's thread. One job at a time; the answer is ready JSON. */
declare const self: Worker;

const databases = new Map<string, Database>();

function open(path: string, extensionPath: string): Database {
  const known = databases.get(path);
  if (known !== undefined) return known;
  const database = new Database(path, { readonly: true });
  loadVectorExtension(database, extensionPath);
  database.run(`PRAGMA mmap_size = ${MMAP_MAX_BYTES}`);
  databases.set(path, database);
  return database;
}

function perform({ path, extensionPath, sql, params, shape }: SearchJob): string {
  const rows = open(path, extensionPath)
    .query(sql)
    .values(...params);
  return shape === "matches" ? matchesJson(rows) : vectorsJson(rows);
}

// The server's thread is the only one that sends, and sends jobs.
self.onmessage = ({ data: job }: MessageEvent<SearchJob>) => {
  try {
    self.postMessage({ text: perform(job) });
  } catch (cause) {
    self.postMessage({ failure: cause instanceof Error ? cause.message : String(cause) });
  }
};
