import { Database } from "bun:sqlite";
import { systemClock } from "../../../kernel/clock.ts";
import { codeOf, reasonOf } from "../../../kernel/errors.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { BUSY_TIMEOUT_MS, CACHE_KIB } from "../limits.ts";
import { serveJobs } from "../processes/program.ts";
import { CommitGate, CommitOrder } from "../writer/commit-gate.ts";
import type { FormerDatetimes } from "./datetimes.ts";
import { declaredMigration } from "./declared.ts";
import type { MigrationFailure } from "./migration-process.ts";
import { MigrationFailed, type MigrationRequest, SchemaMismatch } from "./types.ts";

/** Starts the program of the process that migrates the tables of large instances. [DB310] */
export function start(): void {
  serveJobs<MigrationRequest>({ run: migrate, failureOf });
}

/** Migrates a file, which is complete by itself afterwards: closing the only connection checkpoints, syncs and removes the WAL. */
function migrate({ path, tables, options, place }: MigrationRequest): FormerDatetimes[] {
  using sqlite = new Database(path, { create: false, readwrite: true });
  sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  sqlite.run("PRAGMA temp_store = MEMORY");
  sqlite.run(`PRAGMA cache_size = -${CACHE_KIB}`);
  const order = new CommitOrder({ now: () => 0 });
  order.raise(place);
  const gate = new CommitGate(sqlite, { order, clock: systemClock, ids: systemIds });
  const found: FormerDatetimes[] = [];
  gate.open(() => declaredMigration(tables, options)(sqlite, gate, (former) => found.push(...former)));
  gate.close();
  return found;
}

function failureOf(cause: unknown): MigrationFailure {
  if (cause instanceof SchemaMismatch) return { kind: "mismatch", problems: cause.problems };
  if (cause instanceof MigrationFailed) return { kind: "failed", message: cause.message };
  const code = codeOf(cause);
  return { kind: "file", message: reasonOf(cause), code };
}
