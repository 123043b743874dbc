import fs from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { FileWork } from "../../db/writer/file-work.ts";
import type { FileState } from "../entries/content.ts";
import type { LogEntry, Place } from "../protocol/statements.ts";
import type { FileSource } from "./file-source.ts";
import { FollowedFile, type FollowedFileDeps, rowOf, UnusableFile } from "./followed-file.ts";
import { type FollowedFacts, FollowerState, START } from "./follower-state.ts";
import { APPLY_TURN_MS, CHECKPOINT_FRAMES, FRAMES_MAX, OPEN_FILES_MAX, RETRY_MS, WAITING_MAX_BYTES } from "./limits.ts";
import { bytesOf, type FileStep, type FileSteps, stepsOf } from "./position.ts";
import { requireTechnique } from "./require-technique.ts";
import { type WriteAt, writeAt } from "./wal-index.ts";

/** Folder of a node's data directory with what it knows of its files, and with files that were set aside. */
export const CLUSTER_FOLDER = "cluster";
const STATE_FILE = "follower.db";
const ASIDE_FOLDER = "aside";
const ENDINGS = ["", "-wal", "-shm"];
/** Whether this process has tried how files are changed: its SQLite stays the same. */
let isTried = false;

export interface FollowerFilesOptions {
  /** The data directory. */
  directory: string;
  clock: Clock;
  ids: Ids;
  /** Called in the turn in which a commit of the file at `path` becomes visible. */
  onVisible: (path: string) => void;
  /**
   * Called before a file is replaced or removed that is not an instance's: everything of this process that has it open closes it before
   * it returns.
   */
  onClosing: (path: string) => void;
  onFailure: (path: string, cause: unknown) => void;
  /** Fetches files that were set aside. null: nothing can, and the follower does not answer any more. */
  source: FileSource | null;
  /** Writes to WALs. Default: `writeAt`; tests end the process in between. */
  write?: WriteAt;
}

/**
 * The files of a follower: the entries of the log are applied to them in the order of positions. Nothing may be read of them while
 * `isSettled` is false: then something waits that others take to be applied.
 */
export class FollowerFiles {
  readonly #options: FollowerFilesOptions;
  readonly #state: FollowerState;
  readonly #checkpoints: FileWork;
  readonly #open = new Map<string, FollowedFile>();
  readonly #checkpointing = new Map<string, Promise<void>>();
  /** Files that hold more than was noted: the log has to show them first, or, of a copy, to come to a position. */
  readonly #ahead = new Map<string, FileState & { upTo?: number }>();
  /** Files that have to be fetched, and where they were set aside; null: there was nothing. */
  readonly #missing = new Map<string, string | null>();
  readonly #waiting: LogEntry[] = [];
  #waitingBytes = 0;
  /** Place behind which the log begins, from which the files have to go on; null: they do. */
  #base: Place | null = null;
  #isScheduled = false;
  #isRepairing = false;
  #isClosed = false;
  /** Whether what waits is the end of the log. */
  #isEndReached = false;
  #whenSettled: (() => void)[] = [];

  /**
   * Opens the files that are there. `wasOwner`: whether others than a follower may have changed them. Errors: UnfollowableSqlite, those
   * of the disk.
   */
  constructor(options: FollowerFilesOptions, { wasOwner }: { wasOwner: boolean }) {
    this.#options = options;
    fs.mkdirSync(join(options.directory, CLUSTER_FOLDER, ASIDE_FOLDER), { recursive: true, mode: 0o700 });
    if (!isTried) requireTechnique(join(options.directory, CLUSTER_FOLDER, "tried"), this.#fileDeps());
    isTried = true;
    this.#state = new FollowerState(join(options.directory, CLUSTER_FOLDER, STATE_FILE));
    this.#checkpoints = new FileWork(options.clock);
    for (const facts of [...this.#state.files]) if (wasOwner || facts.open === 1) this.#compare(facts);
    if (this.place.position === 0) this.#doubtAll();
  }

  /** The place of the log that the files are at. */
  get place(): Place {
    return this.#state.place;
  }

  /** Whether everything that was given has been applied, and every file is as the log has it. */
  get isSettled(): boolean {
    const isWhole = this.#missing.size === 0 && this.#ahead.size === 0 && this.#base === null;
    return this.#waiting.length === 0 && isWhole && !this.#isRepairing;
  }

  /** Whether what waits leaves room for more. */
  get hasRoom(): boolean {
    return this.#waitingBytes < WAITING_MAX_BYTES;
  }

  /** Returns what the log has of the file at a path; null: nothing. */
  logged(path: string): FollowedFacts | null {
    return this.#state.byPath(path);
  }

  /** Paths of all files. */
  get paths(): string[] {
    return [...this.#state.files].map(({ path }) => path);
  }

  /** Applies entries that follow the last ones; what takes longer, in later turns. */
  apply(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      this.#waiting.push(entry);
      this.#waitingBytes += bytesOf(entry);
    }
    if (!this.#isScheduled) this.#run();
  }

  /** Resolves once everything is applied. */
  settled(): Promise<void> {
    if (this.isSettled) return Promise.resolve();
    return new Promise((resolve) => this.#whenSettled.push(resolve));
  }

  /** Begins anew at the start of the log. Files stay where they are as far as it turns out to have what they hold. */
  setAside(): void {
    this.#forgetWaiting();
    this.#doubtAll();
  }

  /**
   * Goes on from a place behind which the log begins. Files that are as the object store has them stay; others have to be shown by the
   * log, or are fetched.
   */
  rebase(base: Place): void {
    this.#forgetWaiting();
    this.#base = base;
    this.#repair();
  }

  /**
   * Says that the log has been applied up to its end: what holds more than that holds what nobody has acknowledged. It is set aside,
   * and fetched anew.
   */
  reachedEnd(): void {
    // What waits may be what they hold.
    this.#isEndReached = this.#waiting.length > 0;
    if (this.#isEndReached) return;
    if (this.#base !== null) return;
    for (const [id, { upTo }] of [...this.#ahead])
      if (upTo === undefined) this.#lose(id, new UnusableFile("it holds what the log does not have"));
    this.#repair();
  }

  /** Notes the place and the files as the owner has left them. */
  takeOver(place: Place, files: Iterable<FollowedFacts>): void {
    this.#state.transaction(() => {
      const known = new Set<string>();
      for (const facts of files) {
        known.add(facts.id);
        this.#state.put(facts, { isOpen: false });
        // It held more than this node had noted as a follower: that is what it has written as the owner.
        const ahead = this.#ahead.get(facts.id);
        if (ahead !== undefined && isSame(ahead, facts)) this.#ahead.delete(facts.id);
      }
      for (const { id } of [...this.#state.files]) if (!known.has(id)) this.#state.remove(id);
      this.#state.move(place);
    });
    this.#settle();
  }

  /** Closes everything. Other connections of this process to the files must be closed before. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#checkpointing.values());
    for (const file of this.#open.values()) file.close();
    this.#open.clear();
    this.#state.close();
    await this.#checkpoints.stop();
  }

  #run(): void {
    this.#isScheduled = false;
    if (this.#isClosed || this.#isRepairing || this.#base !== null) return;
    const startedAt = performance.now();
    while (this.#waiting[0] !== undefined) {
      if (this.#mustWait()) return;
      if (performance.now() - startedAt > APPLY_TURN_MS) {
        this.#schedule();
        return;
      }
      const entry = this.#waiting[0];
      this.#applyPosition(entry);
      this.#waiting.shift();
      this.#waitingBytes -= bytesOf(entry);
    }
    if (this.#isEndReached) this.reachedEnd();
    this.#repair();
    this.#settle();
  }

  /** Lets the log show from its start what the files hold. */
  #doubtAll(): void {
    this.#state.hold(START);
    for (const { id, number, nonce } of this.#state.files)
      if (number > 0 && !this.#missing.has(id)) this.#ahead.set(id, { number, nonce });
    this.#settle();
  }

  #forgetWaiting(): void {
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
  }

  #settle(): void {
    if (!this.isSettled) return;
    this.#state.release();
    for (const resolve of this.#whenSettled.splice(0)) resolve();
  }

  #schedule(): void {
    this.#isScheduled = true;
    setImmediate(() => this.#run());
  }

  /** A WAL that readers keep from ending grows; past its bound everything waits for them. */
  #mustWait(): boolean {
    const isLong = [...this.#open.values()].some(({ frames }) => frames > FRAMES_MAX);
    if (isLong) {
      this.#isScheduled = true;
      this.#options.clock.after(RETRY_MS, () => this.#run());
    }
    return isLong;
  }

  #applyPosition(entry: LogEntry): void {
    const files = stepsOf(entry);
    this.#state.opening(files.map(({ file }) => file));
    const visible: string[] = [];
    for (const file of files) if (this.#applyTo(file)) visible.push(file.file);
    this.#state.transaction(() => {
      for (const id of visible) this.#note(id);
      this.#state.move({ position: entry.position, nonce: entry.nonce });
    });
    for (const [id, { upTo }] of this.#ahead) if (upTo !== undefined && upTo <= entry.position) this.#ahead.delete(id);
    for (const id of visible) {
      const facts = this.#state.byId(id);
      if (facts === null) continue;
      this.#options.onVisible(this.#pathOf(facts.path));
      this.#mayCheckpoint(id);
    }
  }

  #note(id: string): void {
    // A process after this one has to find it ahead, too.
    if (this.#ahead.get(id)?.upTo === undefined && this.#ahead.has(id)) return;
    const facts = this.#state.byId(id);
    const file = this.#open.get(id);
    if (facts !== null && file !== undefined) this.#state.put({ ...facts, ...file.state }, { isOpen: true });
  }

  /** Returns whether the file is usable. */
  #applyTo({ file: id, steps }: FileSteps): boolean {
    if (this.#missing.has(id) && steps[0]?.kind !== "created" && steps.at(-1)?.kind !== "removed") return false;
    try {
      for (const step of steps) this.#step(id, step);
      return true;
    } catch (cause) {
      this.#lose(id, cause);
      return false;
    }
  }

  #step(id: string, step: FileStep): void {
    switch (step.kind) {
      case "commits": {
        const file = this.#fileOf(id);
        file.apply(step.commits);
        const ahead = this.#ahead.get(id);
        if (ahead !== undefined && step.commits.some((entry) => entry.kind === "commit" && isSame(entry, ahead)))
          this.#ahead.delete(id);
        return;
      }
      case "created":
        this.#create(id, step);
        return;
      case "removed":
        this.#forget(id, step.content.path);
        return;
      case "copied":
        throw new UnusableFile(`the content of ${step.content.path} is in the object store`);
    }
  }

  #fileOf(id: string): FollowedFile {
    const known = this.#open.get(id);
    if (known !== undefined) {
      // The last used one is the last to be closed.
      this.#open.delete(id);
      this.#open.set(id, known);
      return known;
    }
    const facts = this.#state.byId(id);
    if (facts === null) throw new UnusableFile(`the log has not said where the file ${id} is`);
    const file = new FollowedFile(this.#pathOf(facts.path), this.#fileDeps());
    if (file.id !== "" && file.id !== id) {
      file.close();
      throw new UnusableFile(`${facts.path} is another file than the log's`);
    }
    this.#open.set(id, file);
    this.#closeOldest();
    return file;
  }

  #fileDeps(): FollowedFileDeps {
    const { write = writeAt, ids } = this.#options;
    return { write, randomSalts: (count) => Buffer.from(ids.secret(count), "base64url") };
  }

  #closeOldest(): void {
    if (this.#open.size <= OPEN_FILES_MAX) return;
    for (const [id, file] of this.#open) {
      if (this.#checkpointing.has(id) || file.isOpen || !isInstance(this.#state.byId(id)?.path ?? "")) continue;
      file.close();
      this.#open.delete(id);
      return;
    }
  }

  #create(id: string, { number, content: { path, content } }: FileStep & { kind: "created" }): void {
    const facts = this.#state.byId(id);
    // It was applied before, and entries behind it too.
    if (facts !== null && !this.#missing.has(id) && (facts.number > number || this.#ahead.has(id))) return;
    this.#close(id, path);
    const former = this.#state.byPath(path);
    if (former !== null) this.#close(former.id, path);
    const target = this.#pathOf(path);
    fs.mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    fs.writeFileSync(`${target}.new`, content, { mode: 0o600 });
    this.#install(`${target}.new`, path);
    this.#know(id, path);
  }

  /** Puts a content in its place, where no connection of this process is. */
  #install(source: string, path: string): void {
    const target = this.#pathOf(path);
    // A WAL of the former content would become one of the new content.
    for (const ending of ["-wal", "-shm"]) fs.rmSync(target + ending, { force: true });
    fs.renameSync(source, target);
  }

  #know(id: string, path: string): void {
    const { number, nonce } = rowOf(this.#pathOf(path));
    this.#stands(id);
    this.#state.put({ id, path, number, nonce }, { isOpen: true });
    this.#fileOf(id);
  }

  /** Takes note that a file is there again: what was set aside is not needed any more. */
  #stands(id: string): void {
    const aside = this.#missing.get(id) ?? null;
    this.#missing.delete(id);
    if (aside !== null) for (const ending of ENDINGS) fs.rmSync(aside + ending, { force: true });
  }

  #forget(id: string, path: string): void {
    this.#stands(id);
    this.#ahead.delete(id);
    const facts = this.#state.byId(id);
    if (facts === null) return;
    this.#close(id, path);
    for (const ending of ENDINGS) fs.rmSync(this.#pathOf(facts.path) + ending, { force: true });
    this.#state.remove(id);
  }

  #close(id: string, path: string): void {
    if (!isInstance(path) && fs.existsSync(this.#pathOf(path))) this.#options.onClosing(this.#pathOf(path));
    this.#open.get(id)?.close();
    this.#open.delete(id);
  }

  /** Sets a file aside that is not as the log has it. */
  #lose(id: string, cause: unknown): void {
    const facts = this.#state.byId(id);
    this.#state.hold(this.place);
    this.#ahead.delete(id);
    this.#missing.set(id, this.#missing.get(id) ?? null);
    this.#options.onFailure(facts?.path ?? id, cause);
    if (facts === null) return;
    this.#close(id, facts.path);
    const { directory, ids } = this.#options;
    const aside = join(directory, CLUSTER_FOLDER, ASIDE_FOLDER, ids.uuid());
    this.#missing.set(id, aside);
    for (const ending of ENDINGS)
      if (fs.existsSync(this.#pathOf(facts.path) + ending))
        fs.renameSync(this.#pathOf(facts.path) + ending, aside + ending);
  }

  /** Compares a file with what was noted of it. */
  #compare(facts: FollowedFacts): void {
    const { id, path } = facts;
    try {
      const { number, nonce, file } = rowOf(this.#pathOf(path));
      if (file !== "" && file !== id) throw new UnusableFile(`${path} is another file than the log's`);
      if (number < facts.number || (number === facts.number && nonce !== facts.nonce))
        throw new UnusableFile(`${path} holds commit ${number}, and ${facts.number} was applied to it`);
      if (number > facts.number) this.#ahead.set(id, { number, nonce });
    } catch (cause) {
      this.#lose(id, cause);
    }
  }

  #mayCheckpoint(id: string): void {
    const file = this.#open.get(id);
    if (file === undefined || file.isOpen || file.frames < CHECKPOINT_FRAMES || this.#checkpointing.has(id)) return;
    const run = this.#checkpoint(file)
      .catch((cause: unknown) => this.#options.onFailure(file.path, cause))
      .finally(() => this.#checkpointing.delete(id));
    this.#checkpointing.set(id, run);
  }

  /** Moves a WAL into its file in another process, which syncs both, and ends it once nothing of it is left. */
  async #checkpoint(file: FollowedFile): Promise<void> {
    const tries = 3;
    for (let attempt = 0; attempt < tries; attempt++) {
      await this.#checkpoints.checkpoint(file.path, { next: attempt < tries - 1, sync: true });
      if (this.#isClosed || file.endWal()) return;
    }
  }

  /** Fetches the files that are missing, while nothing else is applied. */
  #repair(): void {
    const { source } = this.#options;
    const isDone = (): boolean => this.#missing.size === 0 && this.#base === null;
    if (this.#isRepairing || this.#isClosed || isDone() || source === null) return;
    this.#isRepairing = true;
    const done = (): void => {
      this.#isRepairing = false;
      if (isDone()) this.#run();
      else this.#options.clock.after(RETRY_MS, () => this.#repair());
    };
    void this.#fetchAll(source).then(done, (cause: unknown) => {
      this.#options.onFailure("", cause);
      done();
    });
  }

  /** Compares the files with those of the object store. */
  async #compareAll(base: Place, source: FileSource): Promise<void> {
    const listed = await source.list();
    if (this.#isClosed || this.#base !== base) return;
    const known = new Set(listed.map(({ id }) => id));
    for (const { id, path, number, nonce } of listed) {
      const facts = this.#state.byId(id);
      if (facts === null) this.#missing.set(id, null);
      else if (facts.path === path && isSame(facts, { number, nonce })) this.#ahead.delete(id);
      else if (!this.#missing.has(id)) this.#ahead.set(id, { number: facts.number, nonce: facts.nonce });
    }
    for (const { id, number, nonce } of this.#state.files)
      if (!known.has(id) && !this.#missing.has(id)) this.#ahead.set(id, { number, nonce });
    this.#state.hold(base);
    this.#base = null;
  }

  async #fetchAll(source: FileSource): Promise<void> {
    if (this.#base !== null) await this.#compareAll(this.#base, source);
    if (this.#base !== null) return;
    for (const id of [...this.#missing.keys()]) {
      if (this.#isClosed || this.#base !== null) return;
      const target = join(this.#options.directory, CLUSTER_FOLDER, `${this.#options.ids.uuid()}.new`);
      const fetched = await source.fetch(id, target);
      if (this.#isClosed || this.#base !== null) return;
      if (fetched !== null) {
        fs.mkdirSync(dirname(this.#pathOf(fetched.path)), { recursive: true, mode: 0o700 });
        this.#install(target, fetched.path);
        this.#know(id, fetched.path);
        const { number, nonce } = this.#fileOf(id).state;
        if (fetched.reached > this.place.position) this.#ahead.set(id, { number, nonce, upTo: fetched.reached });
      }
      for await (const entry of source.entries(id, { after: fetched?.after ?? null, upTo: this.place })) {
        if (this.#isClosed || this.#base !== null) return;
        for (const steps of stepsOf(entry)) if (steps.file === id) for (const step of steps.steps) this.#step(id, step);
      }
      // Neither the object store nor the log has it: it was removed before the log began.
      if (this.#missing.has(id)) this.#forget(id, this.#state.byId(id)?.path ?? "");
      this.#state.transaction(() => this.#note(id));
      const facts = this.#state.byId(id);
      if (facts !== null) this.#options.onVisible(this.#pathOf(facts.path));
    }
  }

  #pathOf(path: string): string {
    return join(this.#options.directory, path);
  }
}

/** Whether a path is that of an instance's file, of which there may be thousands, and none is read in this process. */
const isInstance = (path: string): boolean => path.split("/").length > 2;

const isSame = (one: FileState, other: FileState): boolean => one.number === other.number && one.nonce === other.nonce;
