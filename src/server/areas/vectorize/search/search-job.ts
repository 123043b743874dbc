import { Database } from "bun:sqlite";
import { unreachable } from "../../../../kernel/errors.ts";
import { serveJobs } from "../../../db/processes/program.ts";
import { sqliteFailure } from "../../../db/processes/sqlite-failure.ts";
import { sendText } from "../../../db/processes/text-answer.ts";
import { loadVectorExtension } from "../extension/load.ts";
import { MMAP_MAX_BYTES } from "../limits.ts";
import type { SearchJob, SearchPlace } from "../types.ts";
import { productRows } from "./product.ts";
import { listJson, matchesJson, vectorsJson } from "./result-json.ts";

/**
 * The program of the search processes. It maps index files into memory, so all processes share the system's page cache. It uses
 * bun:sqlite, which reads the extension's virtual table without copying rows.
 */
export function start(): void {
  const databases = new Map<string, Database>();
  const open = ({ path, extensionPath }: SearchPlace): Database => {
    const known = databases.get(path);
    if (known !== undefined) return known;
    const database = new Database(path, { readonly: true });
    loadVectorExtension(database, extensionPath);
    database.run(`PRAGMA mmap_size = ${MMAP_MAX_BYTES}`);
    databases.set(path, database);
    return database;
  };
  serveJobs<SearchJob>({
    run: (job, context) => sendText(resultOf(open(job), job), context),
    failureOf: sqliteFailure,
  });
}

function resultOf(database: Database, job: SearchJob): string {
  switch (job.shape) {
    case "matches":
      return matchesJson(database.query(job.sql).values(...job.params));
    case "vectors":
      return vectorsJson(database.query(job.sql).values(...job.params));
    case "list":
      return listJson(database.query(job.sql).values(...job.params), job);
    case "products":
      return matchesJson(productRows(database, job));
    default:
      return unreachable(job);
  }
}
