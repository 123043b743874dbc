import type { Database } from "bun:sqlite";
import fs from "node:fs";
import type { CommitGate } from "../writer/commit-gate.ts";
import { CapturedFile } from "./captured-file.ts";
import type { FileCapture } from "./types.ts";

/** Takes the commits of a database that another component keeps open, and whose transactions other processes make. */
export class KeptFile {
  readonly #descriptor: number;
  readonly #captured: CapturedFile;

  /** The WAL must be there. Errors: it cannot be opened. */
  constructor(sqlite: Database, gate: CommitGate, { capture, onFailure }: CapturedBy) {
    // Of the WAL only: closing a descriptor of the database file would drop SQLite's locks.
    this.#descriptor = fs.openSync(`${sqlite.filename}-wal`, "r");
    const state = sqlite.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)");
    const frameCount = () => Math.max(0, state.get()?.log ?? 0);
    const parts = { sqlite, gate, sync: { descriptor: this.#descriptor }, created: null, frameCount, onFailure };
    this.#captured = new CapturedFile(capture, parts);
  }

  /** Ends it, before the database is closed. */
  close(): void {
    this.#captured.closed();
    fs.closeSync(this.#descriptor);
  }
}

interface CapturedBy {
  capture: FileCapture;
  onFailure: (cause: unknown) => void;
}
