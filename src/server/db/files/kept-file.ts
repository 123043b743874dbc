import type { Database } from "bun:sqlite";
import fs from "node:fs";
import { CapturedFile } from "../capture/captured-file.ts";
import type { CommitCapture, FileCapture, KeptCommits } from "../capture/types.ts";
import type { CommitGate } from "../writer/commit-gate.ts";
import { moveLeftWal } from "./left-wal.ts";

interface KeptFileOptions {
  /** Takes every commit; null: nothing does. */
  capture: CommitCapture | null;
  onFailure: (path: string, cause: unknown) => void;
}

/** Takes the commits of a database by the connection that keeps it open. */
export class KeptFile implements KeptCommits {
  readonly #path: string;
  readonly #options: KeptFileOptions;
  readonly #capture: FileCapture | null;
  #captured: CapturedFile | null = null;
  /** Descriptor of the WAL. */
  #descriptor: number | null = null;

  /** Makes it before the file is opened, or made. */
  constructor(path: string, options: KeptFileOptions) {
    this.#path = path;
    this.#options = options;
    this.#capture = options.capture?.opening(path) ?? null;
  }

  get wantsContent(): boolean {
    return this.#capture !== null;
  }

  moveLeft(sqlite: Database): void {
    moveLeftWal(sqlite, this.#path, { capture: this.#capture, onFailure: this.#options.onFailure });
  }

  opened(sqlite: Database, gate: CommitGate, created: Uint8Array | null): void {
    if (this.#capture === null) return;
    // Of the WAL only: closing a descriptor of the database file would drop SQLite's locks.
    this.#descriptor = fs.openSync(`${this.#path}-wal`, "r");
    const state = sqlite.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)");
    const frameCount = () => Math.max(0, state.get()?.log ?? 0);
    const onFailure = (cause: unknown) => this.#options.onFailure(this.#path, cause);
    const parts = { sqlite, gate, descriptor: this.#descriptor, created, frameCount, onFailure };
    // Where commits are kept elsewhere, nobody may see one that has not been read.
    this.#captured =
      this.#options.capture?.durable === undefined
        ? CapturedFile.ofOthers(this.#capture, parts)
        : new CapturedFile(this.#capture, parts);
  }

  closed(): void {
    if (this.#descriptor !== null) fs.closeSync(this.#descriptor);
    this.#captured?.closed();
  }
}
