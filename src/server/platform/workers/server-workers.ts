import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { ProcessFigures } from "../../areas/system/processes.ts";
import type { Lending } from "../../db/readers/lent-files.ts";
import type { ReaderNotices } from "../../db/readers/shared-page.ts";
import type { Certificate } from "../../http/listening/listener.ts";
import type { OpenInner } from "../../http/listening/receivers.ts";
import type { RequestCount } from "../../http/rate-limit.ts";
import { BusyLoop, busyMs } from "./busy-loop.ts";
import { EvenLoad } from "./even-load.ts";
import {
  BUSY_LOOK_MS,
  BUSY_SHARE,
  BUSY_WORKERS_SHARE,
  EVEN_LOOK_MS,
  STARTED_MAX,
  STARTED_MEMORY_BYTES,
} from "./limits.ts";
import type { WorkerAnswer } from "./messages.ts";
import type { WorkerAddress, Workers, WorkersOptions } from "./supervisor.ts";

/** The server that workers share a port with. */
export interface SharedServer extends WorkerAddress {
  /** The certificate; null: HTTP. */
  tls: Certificate | null;
  /** Returns the path of an instance's file that may be lent now; null: it may not. */
  lendable(namespace: string, instanceId: string): string | null;
  /** Opens where workers forward requests to. */
  openInner(open: OpenInner): void;
  /** Ends this share of the connections with their next answers. */
  shed(share: number): void;
  /** Returns how many requests have been answered since the start, those of workers included. */
  answered(): number;
}

export interface ServerWorkersOptions extends WorkersOptions {
  /** The number of workers from the start; `auto`: they start while the event loop is busy. */
  count: number | "auto";
}

/** The workers of a server. What they need is loaded, and shared, when the first of them starts. */
export class ServerWorkers {
  /** Called with what the workers have answered. */
  onAnswers: (answers: readonly WorkerAnswer[]) => void = () => {};
  readonly #options: ServerWorkersOptions;
  readonly #max: number;
  #workers: Workers | null = null;
  #server: SharedServer | null = null;
  #hasFailed = false;
  #tls: Certificate | null = null;
  #isStopping = false;
  #requests = 0;
  readonly #loop = new BusyLoop();
  readonly #workersLoop = new BusyLoop();
  #cancelLook = () => {};
  #cancelEven = () => {};

  constructor(options: ServerWorkersOptions) {
    this.#options = options;
    this.#max = options.count === "auto" ? Math.min(STARTED_MAX, processors() - 1) : options.count;
  }

  /** Files as workers see them: they are told what commits do, and give back what they have open. */
  readonly files: { readers: ReaderNotices; lending: Lending } = {
    readers: {
      onVisible: (path) => this.#workers?.page.onVisible(path),
      onFailed: () => {
        this.#hasFailed = true;
        this.#workers?.page.close();
      },
    },
    lending: {
      isLent: (path) => this.#workers?.lent.isLent(path) === true,
      recall: (path) => this.#workers?.lent.recall(path),
    },
  };

  /** The requests of all processes. */
  readonly requests: RequestCount = {
    add: () => this.#workers?.page.requests.add() ?? this.#requests++,
    restart: () => {
      this.#requests = 1;
      this.#workers?.page.requests.restart();
    },
  };

  /** Answers that workers have reported since the start. */
  get answered(): number {
    return this.#workers?.answered ?? 0;
  }

  /** Returns the figures of each worker that listens. */
  figures(): ProcessFigures[] {
    return this.#workers?.figures() ?? [];
  }

  /** Starts the workers, or begins to watch whether they are needed. Resolves when those of the start listen, or have failed to. */
  async begin(server: SharedServer): Promise<void> {
    this.#server = server;
    this.#tls = server.tls;
    if (this.#options.count !== "auto") return this.#start(this.#max);
    if (this.#max > 0) this.#look();
  }

  /** Uses another certificate. */
  renew(certificate: Certificate): void {
    this.#tls = certificate;
    this.#workers?.renew(certificate);
  }

  stop(): Promise<void> {
    this.#isStopping = true;
    this.#cancelLook();
    this.#cancelEven();
    return this.#workers?.stop() ?? Promise.resolve();
  }

  async #start(count: number): Promise<void> {
    const workers = this.#workers ?? (await this.#open());
    if (workers === null || this.#server === null) return;
    const { host, port, notOfSite } = this.#server;
    await workers.start(count, { host, port, notOfSite });
  }

  async #open(): Promise<Workers | null> {
    const { Workers } = await import("./supervisor.ts");
    if (this.#isStopping || this.#server === null) return null;
    const workers = new Workers(this.#options);
    workers.onAnswers = (answers) => this.onAnswers(answers);
    workers.lendable = this.#server.lendable;
    workers.page.requests.restart(this.#requests);
    if (this.#hasFailed) workers.page.close();
    if (this.#tls !== null) workers.renew(this.#tls);
    // From here on commits are counted: before any worker begins to read.
    this.#workers = workers;
    this.#server.openInner(workers.openInner);
    return workers;
  }

  /** Starts another worker while the event loop is busy, and those that there are have their part. */
  #look(): void {
    const { clock, logger } = this.#options;
    this.#cancelLook = clock.after(BUSY_LOOK_MS, () => this.#look());
    const now = performance.now();
    const share = this.#loop.look(now, busyMs());
    const counted = this.#workers?.counted() ?? [];
    const workersMs = counted.reduce((sum, worker) => sum + worker.busyMs, 0) / counted.length;
    const workersShare = counted.length === 0 ? 1 : this.#workersLoop.look(now, workersMs);
    if (share === null || workersShare === null || share < BUSY_SHARE || workersShare < BUSY_WORKERS_SHARE) return;
    if (counted.length >= this.#max || process.availableMemory() < STARTED_MEMORY_BYTES) return;
    this.#cancelLook();
    logger.info("workers: the event loop is busy: another worker starts", { workers: counted.length + 1 });
    const started = this.#start(1).then(() => this.#spread());
    void started
      .catch((cause: unknown) => logger.error("workers: a worker cannot start", { cause }))
      .then(() => {
        if (this.#isStopping) return;
        this.#loop.restart();
        this.#workersLoop.restart();
        this.#look();
      });
  }

  /** Moves connections that are kept alive to processes that have begun to listen since. */
  #spread(): void {
    this.#cancelEven();
    const load = new EvenLoad(performance.now(), this.#got());
    const look = (): void => {
      const shares = load.look(performance.now(), this.#got());
      if (shares === null) return;
      const [main = 0, ...workers] = shares;
      this.#server?.shed(main);
      for (const [place, share] of workers.entries()) if (share > 0) this.#workers?.shed(place, share);
      this.#cancelEven = this.#options.clock.after(EVEN_LOOK_MS, look);
    };
    this.#cancelEven = this.#options.clock.after(EVEN_LOOK_MS, look);
  }

  /** Returns the requests that each process has got from clients, the main one first. */
  #got(): number[] {
    const workers = this.#workers?.counted().map(({ answered, forwarded }) => answered + forwarded) ?? [];
    const others = workers.reduce((sum, count) => sum + count, 0);
    return [Math.max(0, (this.#server?.answered() ?? 0) - others), ...workers];
  }
}

/** Returns how many processors this process may use at once, by the limits of its container too. */
function processors(): number {
  try {
    const [quota, period] = readFileSync("/sys/fs/cgroup/cpu.max", "utf8").split(" ").map(Number);
    if (quota !== undefined && period !== undefined && quota > 0)
      return Math.max(1, Math.min(availableParallelism(), Math.floor(quota / period)));
  } catch {
    // No container limits it.
  }
  return availableParallelism();
}
