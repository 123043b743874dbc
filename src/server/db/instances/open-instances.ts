import type { Clock } from "../../../kernel/clock.ts";
import { AppError, serverStopping } from "../../../kernel/errors.ts";
import { DeadlineError, within } from "../../../kernel/time/deadline.ts";
import { Scheduler } from "../../../kernel/time/scheduler.ts";
import type { InstanceBounds } from "../files/descriptors.ts";
import { ROOM_WAIT_MS, SWEEP_DELAY_MS } from "../limits.ts";
import type { OpenedFile } from "../types.ts";
import { WaitingWork } from "./waiting-work.ts";

interface OpenInstance {
  file: OpenedFile;
  isClosing: boolean;
  /** Whether the file stays open until the next turn, for requests that waited for it and have not used it yet. */
  isKept: boolean;
  useCount: number;
}

/** Open files of instances, as an LRU. Beyond the bounds the least recently used are closed; work waits while all are busy. */
export class OpenInstances {
  readonly #clock: Clock;
  readonly #bounds: InstanceBounds;
  readonly #openFile: (instanceId: string) => OpenedFile;
  readonly #isHeld: (instanceId: string) => boolean;
  readonly #isLent: (instanceId: string) => boolean;
  readonly #recall: (instanceId: string) => Promise<void> | undefined;
  /** Files in the order of last use. */
  readonly #open = new Map<string, OpenInstance>();
  readonly #waiting = new WaitingWork();
  /**
   * Limits openings per turn: opening a file takes milliseconds and making one longer, so hundreds at once would block the event
   * loop for seconds.
   */
  readonly #scheduler = new Scheduler();
  #isAdmissionDue = false;
  #closingCount = 0;
  #isSweepDue = false;

  /**
   * `openFile`: has the errors of `use`. `isHeld`: whether the file stays open though nothing runs on it. `isLent`, `recall`: see
   * `Lending`.
   */
  constructor(
    clock: Clock,
    bounds: InstanceBounds,
    deps: {
      openFile(instanceId: string): OpenedFile;
      isHeld(instanceId: string): boolean;
      isLent(instanceId: string): boolean;
      recall(instanceId: string): Promise<void> | undefined;
    },
  ) {
    this.#clock = clock;
    this.#bounds = bounds;
    this.#openFile = deps.openFile;
    this.#isHeld = deps.isHeld;
    this.#isLent = deps.isLent;
    this.#recall = deps.recall;
  }

  get size(): number {
    return this.#open.size;
  }

  ids(): string[] {
    return [...this.#open.keys()];
  }

  has(instanceId: string): boolean {
    return this.#open.has(instanceId);
  }

  /** Whether the file is open, and is not being closed. */
  isStaying(instanceId: string): boolean {
    return this.#open.get(instanceId)?.isClosing === false;
  }

  /** Returns the open file, now the most recently used. Errors: 503 if all files that may be open are busy; those of opening it. */
  use(instanceId: string): OpenedFile {
    const known = this.#open.get(instanceId);
    if (known !== undefined) {
      known.useCount += 1;
      this.#open.delete(instanceId);
      this.#open.set(instanceId, known);
      return known.file;
    }
    if (!this.#hasRoom(instanceId)) throw this.#tooMany();
    const file = this.#openFile(instanceId);
    this.#open.set(instanceId, { file, isClosing: false, isKept: false, useCount: 1 });
    this.#waiting.begin(instanceId, file);
    return file;
  }

  /**
   * Uses the file. Waits first if all files that may be open are busy, or if this turn has opened files for long enough. Errors:
   * those of `use`; 503, too many wait.
   */
  withRoom<T>(instanceId: string, work: (file: OpenedFile) => Promise<T>): Promise<T> {
    if (this.#mayUseNow(instanceId)) return Promise.try(() => work(this.use(instanceId)));
    if (this.#waiting.isFull) return Promise.reject(this.#tooMany());
    const result = this.#waiting.add(instanceId, work);
    this.#admitSoon();
    return result;
  }

  /**
   * Opens the file if there is room. Otherwise resolves when it is open. It stays open for the rest of that turn. Errors: those of
   * `withRoom`; 503 after ROOM_WAIT_MS.
   */
  whenOpen(instanceId: string): Promise<void> | undefined {
    if (this.#open.has(instanceId)) return undefined;
    if (this.#mayUseNow(instanceId)) {
      this.use(instanceId);
      this.#keep(instanceId);
      return undefined;
    }
    const opened = this.withRoom(instanceId, async () => this.#keep(instanceId));
    return within(this.#clock, ROOM_WAIT_MS, opened).catch((cause: unknown) => {
      throw cause instanceof DeadlineError ? this.#tooMany() : cause;
    });
  }

  async close(instanceId: string): Promise<void> {
    const known = this.#open.get(instanceId);
    if (known === undefined) return;
    known.isClosing = true;
    await this.#recall(instanceId);
    await known.file.close();
    this.#open.delete(instanceId);
  }

  /**
   * Ends with `error` what is under way in the instance and what waits for it, and closes its file. Errors: those of
   * `OpenedFile.end`.
   */
  async end(instanceId: string, error: AppError): Promise<void> {
    this.#waiting.refuse(instanceId, error);
    const known = this.#open.get(instanceId);
    if (known === undefined) return;
    // Prevents other code from closing the file meanwhile.
    known.isClosing = true;
    known.useCount += 1;
    try {
      await this.#recall(instanceId);
      await known.file.end(error);
    } catch (cause) {
      known.isClosing = false;
      throw cause;
    }
    this.#open.delete(instanceId);
  }

  async closeAll(): Promise<void> {
    this.#waiting.refuseAll(serverStopping());
    await Promise.all([...this.#open.values()].map(({ file }) => file.close()));
    this.#open.clear();
  }

  /** Reports whether the file is open, or may be opened before those that wait. [DB105] */
  #mayUseNow(instanceId: string): boolean {
    if (this.#open.has(instanceId)) return true;
    return this.#waiting.isEmpty && this.#scheduler.hasTime && this.#hasRoom(instanceId);
  }

  #hasRoom(instanceId: string): boolean {
    if (this.#open.has(instanceId)) return true;
    this.#makeRoom();
    return !this.#isFull;
  }

  #keep(instanceId: string): void {
    const instance = this.#open.get(instanceId);
    if (instance === undefined || instance.isKept) return;
    instance.isKept = true;
    setImmediate(() => {
      instance.isKept = false;
      this.#admitSoon();
    });
  }

  /** Opens files with waiting work while there is room and time in this turn, and begins all work that waits for each. */
  #admit(): void {
    for (const instanceId of this.#waiting.instanceIds()) {
      if (!this.#scheduler.hasTime) {
        this.#admitSoon();
        return;
      }
      if (!this.#hasRoom(instanceId)) return;
      try {
        this.use(instanceId);
      } catch (error) {
        this.#waiting.refuse(instanceId, error);
      }
    }
  }

  #admitSoon(): void {
    if (this.#isAdmissionDue) return;
    this.#isAdmissionDue = true;
    setImmediate(() => {
      this.#isAdmissionDue = false;
      this.#admit();
    });
  }

  /** Makes room for one more file by closing the least recently used ones. A busy file is never closed. */
  #makeRoom(): void {
    const { openMax, overMax, closingMax } = this.#bounds;
    for (const [instanceId, instance] of this.#open) {
      if (this.#open.size - this.#closingCount < openMax) return;
      if (instance.isClosing || instance.isKept || this.#isHeld(instanceId) || !instance.file.isIdle) continue;
      if (this.#closingCount < closingMax) void this.#closeBeside(instanceId, instance);
      else if (this.#open.size < openMax + overMax) break;
      else if (!this.#isLent(instanceId)) this.#closeNow(instanceId, instance);
    }
    // Busy files were skipped. A timer tries them again, in case no other file is opened.
    if (this.#open.size - this.#closingCount < openMax || this.#isSweepDue) return;
    this.#isSweepDue = true;
    this.#clock.after(SWEEP_DELAY_MS, () => {
      this.#isSweepDue = false;
      this.#makeRoom();
      this.#admit();
    });
  }

  get #isFull(): boolean {
    const { openMax, overMax, closingMax } = this.#bounds;
    return this.#open.size >= openMax + overMax + closingMax;
  }

  #tooMany(): AppError {
    return new AppError(503, `Too many database instances are in use (at most ${this.#bounds.openMax})`, {
      headers: { "retry-after": "1" },
    });
  }

  /** Checkpoints the WAL off the main thread, then closes the file. A use of the file meanwhile keeps it open. */
  async #closeBeside(instanceId: string, instance: OpenInstance): Promise<void> {
    const { useCount } = instance;
    instance.isClosing = true;
    this.#closingCount += 1;
    try {
      await this.#recall(instanceId);
      await instance.file.prepareClose();
      if (instance.useCount === useCount && instance.file.isIdle) this.#closeNow(instanceId, instance);
    } finally {
      instance.isClosing = false;
      this.#closingCount -= 1;
      // Even if the file has stayed open: waiting work may need another file to be closed.
      this.#admit();
    }
  }

  #closeNow(instanceId: string, instance: OpenInstance): void {
    this.#open.delete(instanceId);
    instance.file.closeNow();
  }
}
