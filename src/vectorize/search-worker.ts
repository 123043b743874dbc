import { Database } from "bun:sqlite";
import { unreachable } from "../kernel/errors.ts";
import { loadVectorExtension } from "./extension.ts";
import { MMAP_MAX_BYTES } from "./limits.ts";
import { productRows } from "./product.ts";
import { matchesJson, vectorsJson } from "./result-json.ts";
import type { SearchJob, SearchPlace } from "./types.ts";

/** Searches on connections of its own, beside the server's thread. One job at a time; the answer is ready JSON. */
declare const self: Worker;

const databases = new Map<string, Database>();

function open({ path, extensionPath }: SearchPlace): Database {
  const known = databases.get(path);
  if (known !== undefined) return known;
  const database = new Database(path, { readonly: true });
  loadVectorExtension(database, extensionPath);
  database.run(`PRAGMA mmap_size = ${MMAP_MAX_BYTES}`);
  databases.set(path, database);
  return database;
}

function perform(job: SearchJob): string {
  const database = open(job);
  switch (job.shape) {
    case "matches":
      return matchesJson(database.query(job.sql).values(...job.params));
    case "vectors":
      return vectorsJson(database.query(job.sql).values(...job.params));
    case "products":
      return matchesJson(productRows(database, job));
    default:
      return unreachable(job);
  }
}

// The server's thread is the only one that sends, and sends jobs.
self.onmessage = ({ data: job }: MessageEvent<SearchJob>) => {
  try {
    self.postMessage({ text: perform(job) });
  } catch (cause) {
    self.postMessage({ failure: cause instanceof Error ? cause.message : String(cause) });
  }
};
