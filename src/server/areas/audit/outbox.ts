import { join, relative, sep } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import { type AuditActor, currentTrace } from "../../../kernel/observing/request-trace.ts";
import type { AuditedChange, AuditSink, AuditSource } from "../../db/index.ts";
import { FAILURES_PER_MINUTE, FAILURES_WINDOW_MS } from "./limits.ts";

/** Writes an entry into a file of the server, from which the log takes it. Resolves when it is on disk. */
type WriteEntry = (actor: AuditActor, change: AuditedChange) => Promise<void>;

/** Sources of the log's entries. It exists before the files are opened; the log is connected later. */
export class AuditOutbox implements AuditSink {
  readonly #clock: Clock;
  readonly #databases: string;
  readonly #sources = new Set<AuditSource>();
  #wake: (() => void) | null = null;
  #flush: (() => Promise<void>) | null = null;
  #write: WriteEntry | null = null;
  /** Resolves when the failed sign-ins so far are written, or could not be. */
  #noted: Promise<unknown> = Promise.resolve();
  /** Failures of the current window. */
  #window = { endsAt: 0, failures: 0 };

  constructor({ clock, dataDirectory }: { clock: Clock; dataDirectory: string }) {
    this.#clock = clock;
    this.#databases = join(dataDirectory, "databases");
  }

  placeOf(path: string): string {
    return ["db", ...relative(this.#databases, path).replace(/\.db$/, "").split(sep)].join("/");
  }

  onWaiting(source: AuditSource): void {
    this.#sources.add(source);
    this.#wake?.();
  }

  onClosed(source: AuditSource): void {
    this.#sources.delete(source);
  }

  /** Connects the log. `wake`: entries are waiting. `write`: for entries that belong to no transaction. */
  connect(log: {
    wake(): void;
    /** Resolves when all waiting entries have been taken, or could not be. */
    flush(): Promise<void>;
    write: WriteEntry;
  }): void {
    const { wake, flush, write } = log;
    this.#wake = wake;
    this.#flush = flush;
    this.#write = write;
    if (this.isWaiting) wake();
  }

  async flush(): Promise<void> {
    await this.#noted;
    await this.#flush?.();
  }

  get isWaiting(): boolean {
    return this.#sources.size > 0;
  }

  get sources(): readonly AuditSource[] {
    return [...this.#sources];
  }

  /**
   * Records a change by a service key or an administrator in the current request that is in no transaction of the server's files.
   * Resolves when it is on disk. Errors: the entry cannot be written.
   */
  async record(change: AuditedChange): Promise<void> {
    const actor = currentTrace()?.actor ?? null;
    if (actor === null) return;
    await this.#write?.(actor, change);
    // Makes the log take it before entries that other files get next.
    await this.#flush?.();
  }

  /** Records what anybody did that is no change of the server's files. Resolves when it is on disk. Errors: as for `record`. */
  async recordAct(actor: AuditActor, act: AuditedChange): Promise<void> {
    await this.#write?.(actor, act);
    await this.#flush?.();
  }

  async #note(change: AuditedChange): Promise<void> {
    const written = this.#write?.(NOBODY, change);
    this.#noted = Promise.allSettled([this.#noted, written]);
    await written;
  }

  /**
   * Records a failed sign-in. Within a minute only the first failures have an entry each; the entry at the next failure after it
   * counts the rest. Resolves when the entry is on disk. Errors: it cannot be written.
   */
  async failed(target: string, about: object): Promise<void> {
    const now = this.#clock.now();
    const noted: Promise<void>[] = [];
    if (now >= this.#window.endsAt || this.#window.endsAt > now + FAILURES_WINDOW_MS) {
      const { failures } = this.#window;
      this.#window = { endsAt: now + FAILURES_WINDOW_MS, failures: 0 };
      if (failures > FAILURES_PER_MINUTE) {
        const after = { count: failures - FAILURES_PER_MINUTE };
        noted.push(this.#note({ action: "signin.failed", target: "users", after }));
      }
    }
    this.#window.failures += 1;
    if (this.#window.failures <= FAILURES_PER_MINUTE) {
      noted.push(this.#note({ action: "signin.failed", target, after: about }));
    }
    await Promise.all(noted);
  }
}

const NOBODY: AuditActor = { kind: "anonymous", name: null };
