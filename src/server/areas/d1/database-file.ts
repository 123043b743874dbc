import { Database } from "bun:sqlite";
import { existsSync, readFileSync, statSync } from "node:fs";
import type { Ids } from "../../../kernel/ids.ts";
import { assertOpenable, markFile } from "../../db/files/file-identity.ts";
import { createFile } from "../../db/files/new-file.ts";
import type { CommitGate, StorageEngine } from "../../db/index.ts";
import { openError } from "../../db/writer/sqlite-errors.ts";
import { BUSY_TIMEOUT_MS, LOG_KEPT_BYTES } from "./limits.ts";

/**
 * A database as the server keeps it: in WAL mode, so that reads and a write can run concurrently, with the gate that its commits
 * pass. The WAL and its index exist as long as this connection, so that processes can begin to read even when the disk is full, and
 * no process ends the WAL by closing its own connection.
 */
export class SqlFile {
  readonly path: string;
  readonly gate: CommitGate;
  readonly #kept: Database;
  readonly #capture: ReturnType<StorageEngine["keep"]>;
  #isClosed = false;

  /** Opens the file, or creates it. Errors: one that names the file and the problem. */
  constructor(path: string, { engine, ids }: { engine: Pick<StorageEngine, "gate" | "keep">; ids: Ids }) {
    this.path = path;
    const isNew = !existsSync(path);
    const hasLeftWal = logBytes(path) > 0;
    this.#capture = engine.keep(path);
    let kept: Database | null = null;
    try {
      if (isNew) createFile(path, {}, { ids, migrate: () => {} });
      else assertOpenable(path);
      // Read before SQLite opens it: closing a descriptor drops SQLite's locks.
      const created = isNew && this.#capture.wantsContent ? readFileSync(path) : null;
      kept = new Database(path, { create: true });
      kept.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
      markFile(kept, ids);
      const [before] = kept.query<{ journal_mode: string }, []>("PRAGMA journal_mode").all();
      kept.run("PRAGMA journal_mode = WAL");
      kept.run("PRAGMA wal_autocheckpoint = 0");
      if (hasLeftWal) this.#capture.moveLeft(kept);
      this.gate = engine.gate(kept, { isRewritten: before?.journal_mode !== "wal" });
      this.gate.open(() => {});
      kept.query("SELECT count(*) FROM sqlite_schema").get();
      this.#capture.opened(kept, this.gate, created);
      this.#kept = kept;
    } catch (error) {
      kept?.close();
      throw openError(path, error);
    }
  }

  /** Returns the pages in the write-ahead log, whose file may be longer; 0 once it is closed. */
  loggedPages(): number {
    if (this.#isClosed) return 0;
    const [found] = this.#kept.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)").all();
    return Math.max(0, found?.log ?? 0);
  }

  /** Closes the file, which ends its write-ahead log. Call it when no process has the file open. */
  async close(): Promise<void> {
    await this.gate.observed();
    this.#isClosed = true;
    this.gate.close();
    this.#kept.close();
    this.#capture.closed();
  }
}

/** Returns the bytes of a database's write-ahead log; 0 without one. */
export const logBytes = (path: string): number => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;

/** Whether the write-ahead log is larger than a completed write leaves it. */
export const hasLargeLog = (path: string): boolean => logBytes(path) > LOG_KEPT_BYTES;
