import type { Database } from "bun:sqlite";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import { COMMIT_CAPTURED_MAX_BYTES, FRAMES_READ_AT_ONCE_BYTES } from "../limits.ts";
import { COMMIT_TABLE, type CommitGate } from "../writer/commit-gate.ts";
import type { Durable } from "../writer/durability.ts";
import type { WalSync } from "../writer/wal-sync.ts";
import { FrameReader } from "./frame-reader.ts";
import type { FileCapture } from "./types.ts";

/** Reads each commit of an open file, right after it, and knows which of them a sync has covered. */
export class CapturedFile {
  readonly #capture: FileCapture;
  readonly #reader: FrameReader;
  readonly #onFailure: (cause: unknown) => void;
  /** Number of reads, and the number of them whose frames are on the disk. */
  #readCount = 0;
  #syncedCount = 0;
  /** A commit of another process that is being read; null: none is. */
  #reading: Promise<void> | null = null;

  constructor(
    capture: FileCapture,
    options: {
      sqlite: Database;
      gate: CommitGate;
      /** Descriptor of the WAL. */
      descriptor: number;
      created: Uint8Array | null;
      frameCount: () => number;
      onFailure: (cause: unknown) => void;
    },
  ) {
    const { sqlite, gate, descriptor, created, frameCount, onFailure } = options;
    this.#capture = capture;
    this.#onFailure = onFailure;
    const take = capture.frames.bind(capture);
    this.#reader = new FrameReader({ descriptor, frameCount, take });
    using rootOf = sqlite.prepare<{ page: number }, [string]>(
      `SELECT "rootpage" AS "page" FROM "sqlite_schema" WHERE "name" = ?`,
    );
    const page = rootOf.get(COMMIT_TABLE)?.page ?? 0;
    const whole = () => new Uint8Array(sqlite.serialize());
    const { file, before, isRewritten } = gate;
    const isTaken = capture.opened({ file, page, created, isRewritten, before, whole });
    gate.onCommitted = () => this.#read();
    if (isTaken === true) this.#reader.skip();
    else this.#read();
  }

  /**
   * Begins to take the commits of a file that only other processes write to, which sync each. A large one is read in turns, and the next
   * commit waits for that.
   */
  static ofOthers(...[capture, options]: ConstructorParameters<typeof CapturedFile>): CapturedFile {
    const captured = new CapturedFile(capture, options);
    options.gate.onCommitted = () => captured.#readOthers();
    options.gate.whenObserved = async () => captured.#reading ?? undefined;
    return captured;
  }

  /** Whether every commit that was read is on the disk. */
  get isSynced(): boolean {
    return this.#syncedCount === this.#readCount;
  }

  /** Returns a sync that notes what it has covered, or `durable` in its place. */
  noting(sync: WalSync, durable: Durable = sync.run): WalSync {
    return {
      descriptor: sync.descriptor,
      run: (done, doubt) => {
        const covered = this.#readCount;
        durable((error) => {
          if (error === null) this.#syncedCount = Math.max(this.#syncedCount, covered);
          done(error);
        }, doubt);
      },
      close: () => sync.close(),
    };
  }

  /** Reads a large commit in pieces, while nothing else commits. One that is too large has the file compared as a whole. */
  async readInTurns(): Promise<void> {
    try {
      if (this.#reader.waitingBytes > COMMIT_CAPTURED_MAX_BYTES) {
        this.#reader.skip();
        this.#capture.broken();
      }
      for (const _ of this.#reader.pieces()) await nextTurn();
      this.#readCount += 1;
    } catch (cause) {
      this.#fail(cause);
    }
  }

  /** Takes note that the file has been closed, and its WAL moved. */
  closed(): void {
    this.#capture.closed();
  }

  #readOthers(): void {
    if (this.#reading !== null) return;
    if (this.#reader.waitingBytes <= FRAMES_READ_AT_ONCE_BYTES) {
      this.#read();
      return;
    }
    this.#reading = this.readInTurns().then(() => {
      this.#reading = null;
    });
  }

  #read(): void {
    try {
      if (this.#reader.read()) this.#readCount += 1;
    } catch (cause) {
      this.#fail(cause);
    }
  }

  #fail(cause: unknown): void {
    this.#capture.broken();
    this.#onFailure(cause);
  }
}
