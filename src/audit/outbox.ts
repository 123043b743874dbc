import { join, relative, sep } from "node:path";
import {
  type AuditedChange,
  type AuditSink,
  type AuditSource,
  type AuditText,
  entryText,
  originOf,
} from "../db/index.ts";
import type { Clock } from "../kernel/clock.ts";
import { type AuditActor, currentTrace } from "../kernel/observing/request-trace.ts";
import { FAILURES_PER_MINUTE, FAILURES_WINDOW_MS, WAITING_ENTRIES_MAX } from "./limits.ts";

/** What the log takes its entries from. It exists before the files are opened; the log is connected later. */
export class AuditOutbox implements AuditSink {
  readonly #clock: Clock;
  readonly #databases: string;
  readonly #sources = new Set<AuditSource>();
  #entries: AuditText[] = [];
  #wake: (() => void) | null = null;
  #flush: (() => Promise<void>) | null = null;
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

  /** `wake`: something waits. `flush` resolves when all that waits has been written, or has failed to be. */
  connect({ wake, flush }: { wake(): void; flush(): Promise<void> }): void {
    this.#wake = wake;
    this.#flush = flush;
    if (this.isWaiting) wake();
  }

  async flush(): Promise<void> {
    await this.#flush?.();
  }

  get isWaiting(): boolean {
    return this.#sources.size > 0 || this.#entries.length > 0;
  }

  get sources(): readonly AuditSource[] {
    return [...this.#sources];
  }

  /** Removes and returns the entries that are of no transaction. */
  takeEntries(): AuditText[] {
    const taken = this.#entries;
    this.#entries = [];
    return taken;
  }

  /** Adds them again, in front. */
  putBack(entries: readonly AuditText[]): void {
    this.#entries = [...entries, ...this.#entries];
  }

  /** Writes down what no file of the server's has in a transaction. It is in the log within a second. */
  note(actor: AuditActor, change: AuditedChange): void {
    if (this.#entries.length >= WAITING_ENTRIES_MAX) return;
    this.#entries.push(entryText(change, { actor, at: this.#clock.now(), from: originOf(currentTrace()) }));
    this.#wake?.();
  }

  /** The same for what a service key or an administrator changes by the current request. Resolves when it is on disk. */
  async record(change: AuditedChange): Promise<void> {
    const actor = currentTrace()?.actor ?? null;
    if (actor === null) return;
    this.note(actor, change);
    await this.flush();
  }

  /** A failed sign-in. Of many within a minute only the first have an entry each, and the next one says how many followed. */
  failed(target: string, about: object): void {
    const now = this.#clock.now();
    if (now >= this.#window.endsAt || this.#window.endsAt > now + FAILURES_WINDOW_MS) {
      const { failures } = this.#window;
      this.#window = { endsAt: now + FAILURES_WINDOW_MS, failures: 0 };
      if (failures > FAILURES_PER_MINUTE) {
        const after = { count: failures - FAILURES_PER_MINUTE };
        this.note(NOBODY, { action: "signin.failed", target: "users", after });
      }
    }
    this.#window.failures += 1;
    if (this.#window.failures <= FAILURES_PER_MINUTE) {
      this.note(NOBODY, { action: "signin.failed", target, after: about });
    }
  }
}

const NOBODY: AuditActor = { kind: "anonymous", name: null };
