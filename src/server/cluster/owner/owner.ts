import { resolve } from "node:path";
import type { AnswerGate } from "../../../kernel/answer-gate.ts";
import { clusterRefusal } from "../../../kernel/errors.ts";
import type { CommitCapture } from "../../db/index.ts";
import { type DurabilityErrors, DurabilityRefused } from "../../db/writer/durability.ts";
import type { LogRow } from "../protocol/statements.ts";
import { CapturedFiles, type LoggedFile } from "./captured-files.ts";
import { EVERYWHERE_MAX_MS, WAIT_MAX_MS } from "./limits.ts";
import { Waits } from "./waits.ts";

/** A member of the cluster as its owner sees it. */
export interface OwnerMember {
  readonly isOwner: boolean;
  readonly position: number;
  readonly announcement: { position: number } | null;
  mayAnswer(position: number): boolean;
  commit(row: LogRow): number | null;
  isEverywhere(position: number, sinceMs: number): boolean;
}

export interface OwnerOptions {
  member: OwnerMember;
  dataDirectory: string;
  /** Returns what the log has of a file, by its path in the data directory; null: nothing. */
  logged: (path: string) => LoggedFile | null;
  /** The monotonic clock. */
  nowMs: () => number;
  /** Told that a revocation waits until every node has applied this position. */
  onRevocation?: (position: number) => void;
  /** Told once why nothing more can be committed: the group should be released, and the files set aside where commits were lost. */
  onFailed: (cause: unknown) => void;
}

/**
 * Ownership of a server: each commit of its files goes to the log, a write waits for it, and what leaves waits until the log has
 * everything that it may have been computed from. [CLU40]–[CLU45]
 */
export class ClusterOwner {
  readonly capture: CommitCapture;
  readonly gate: AnswerGate;
  readonly #options: OwnerOptions;
  readonly #files: CapturedFiles;
  readonly #writes = new Waits();
  readonly #answers = new Waits();
  /** Revocations, which wait until no node uses what they have taken away. */
  readonly #revocations = new Waits();
  #failure: Error | null = null;
  #hasLost = false;

  constructor(options: OwnerOptions) {
    this.#options = options;
    const dataDirectory = resolve(options.dataDirectory);
    this.#files = new CapturedFiles({
      ...options,
      dataDirectory,
      append: (rows) => this.#append(rows),
      failed: (cause) => this.end(cause),
    });
    this.capture = {
      durable: (done, doubt) => this.#durable(done, doubt),
      opening: (path) => this.#files.opening(path),
      removing: (path) => this.#files.removing(path),
    };
    const { member } = options;
    this.gate = {
      get position() {
        return member.position;
      },
      wait: () => this.#wait(member.position),
      lease: () => this.#wait(member.announcement?.position ?? member.position),
      everywhere: () => this.#everywhere(),
    };
  }

  /** Whether there are commits in the files that the log was not given: they are to be set aside. */
  get hasLost(): boolean {
    return this.#hasLost;
  }

  /** Each file that this owner has opened, as the log has it; null: it was removed. */
  get logged(): CapturedFiles["logged"] {
    return this.#files.logged;
  }

  /** Whether a revocation waits until no node uses what it has taken away. */
  get isRevoking(): boolean {
    return !this.#revocations.isEmpty;
  }

  /** Looks what may leave now. Called when the member has progressed, and some times a second. */
  progressed(): void {
    const { member, nowMs } = this.#options;
    if (this.#failure !== null) return;
    if (!member.isOwner) {
      this.end(new Error("Another node has taken the group"));
      return;
    }
    if (this.#writes.isEmpty && this.#answers.isEmpty && this.#revocations.isEmpty) return;
    const acknowledged = member.announcement?.position ?? -1;
    this.#writes.settle((position) => position <= acknowledged);
    this.#answers.settle((position) => member.mayAnswer(position));
    const beforeMs = nowMs() - WAIT_MAX_MS;
    this.#writes.remind(beforeMs);
    this.#answers.remind(beforeMs);
    this.#revocations.settle((position, sinceMs) => position <= acknowledged && member.isEverywhere(position, sinceMs));
    this.#revocations.remind(nowMs() - EVERYWHERE_MAX_MS);
  }

  /** Ends it in order: the server has stopped, and the group may be given up. */
  close(): void {
    this.#failure ??= new Error("The server has stopped");
  }

  /** Ends it: nothing more is committed, and what waits fails. For the end of ownership, and where the log cannot be reached in a stop. */
  end(cause: Error): void {
    if (this.#failure !== null) return;
    this.#failure = cause;
    this.#writes.fail(new DurabilityRefused(refusals()));
    this.#answers.fail(clusterRefusal("no_owner", cause));
    this.#revocations.fail(clusterRefusal("unknown_outcome", cause));
    this.#options.onFailed(cause);
  }

  #append(rows: readonly LogRow[]): void {
    for (const row of rows) {
      if (this.#failure === null && this.#options.member.commit(row) !== null) continue;
      this.#hasLost = true;
      this.end(new Error("A commit came when this node was no longer the owner, or more waited than the log takes"));
    }
  }

  #durable(done: (error: Error | null) => void, doubt: (errors: DurabilityErrors) => void): void {
    const { member, nowMs } = this.#options;
    if (this.#failure !== null) {
      done(new DurabilityRefused(refusals()));
      return;
    }
    const { position } = member;
    if (position <= (member.announcement?.position ?? -1)) {
      done(null);
      return;
    }
    this.#writes.add({
      position,
      sinceMs: nowMs(),
      // `fail` above gives it an error.
      ended: (error) => done(error as Error | null),
      late() {
        doubt(refusals());
        return true;
      },
    });
  }

  #wait(position: number): Promise<void> | null {
    const { member } = this.#options;
    if (this.#failure !== null || !member.isOwner) return Promise.reject(clusterRefusal("no_owner", this.#failure));
    if (member.mayAnswer(position)) return null;
    // Nothing has moved for so long that whoever asks now would wait in vain.
    if (this.#writes.isLate) return Promise.reject(clusterRefusal("stale"));
    return this.#waitIn(this.#answers, position, clusterRefusal("stale"));
  }

  #everywhere(): Promise<void> {
    const { member } = this.#options;
    if (this.#failure !== null || !member.isOwner)
      return Promise.reject(clusterRefusal("unknown_outcome", this.#failure));
    // It was acknowledged before this call: nodes that have joined since follow the log from behind it.
    const position = member.announcement?.position ?? member.position;
    const applied = this.#waitIn(this.#revocations, position, clusterRefusal("unknown_outcome"));
    this.#options.onRevocation?.(position);
    return applied;
  }

  #waitIn(waits: Waits, position: number, tooLate: Error): Promise<void> {
    const sinceMs = this.#options.nowMs();
    return new Promise((resolve, reject) => {
      waits.add({
        position,
        sinceMs,
        ended: (error) => (error === null ? resolve() : reject(error)),
        late() {
          reject(tooLate);
          return false;
        },
      });
    });
  }
}

const refusals = (): DurabilityErrors => ({
  committed: clusterRefusal("unknown_outcome"),
  refused: clusterRefusal("no_owner"),
});
