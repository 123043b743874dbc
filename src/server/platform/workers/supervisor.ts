import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import type { Clock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { UNDER_WAY_MAX_MS } from "../../../kernel/limits.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { ownCommand } from "../../../kernel/process/own-command.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import type { ProcessFigures } from "../../areas/system/processes.ts";
import { SYSTEM_FILE } from "../../db/index.ts";
import { LentFiles } from "../../db/readers/lent-files.ts";
import { createPageFile, SharedPage, type WorkerFigures } from "../../db/readers/shared-page.ts";
import { makeWorkersLock } from "../../db/readers/workers-lock.ts";
import type { Certificate } from "../../http/listening/listener.ts";
import { InnerServer } from "../../http/workers/inner-server.ts";
import { WORKER_COMMAND } from "./command.ts";
import { LIVED_MS, READY_MAX_MS, RESTART_MAX_MS, RESTART_MS, SIGN_MS, SILENT_MAX_MS } from "./limits.ts";
import type { FromWorker, ToWorker, WorkerAnswer, WorkerOrder } from "./messages.ts";
import { answersIn } from "./reports.ts";

const SECRET_BYTES = 24;
const KIB = 1024;
const MICROSECONDS_PER_MS = 1000;

export interface WorkersOptions {
  /** The arguments of the command, by which a worker loads the same config. */
  args: readonly string[];
  /** Returns the hash of the files of the config, as of the start. Called once. */
  configHash: () => string;
  order: Pick<WorkerOrder, "dataDirectory" | "secrets" | "isDrill">;
  clock: Clock;
  logger: Logger;
}

/** Place at which workers listen, and what lies beside it. */
export type WorkerAddress = Pick<WorkerOrder, "host" | "port" | "notOfSite">;

interface Running {
  child: Subprocess;
  startedAt: number;
  isReady: boolean;
  /** The certificate that it has begun with. */
  tls: Certificate | null;
  /** The last number of signs, and since when it is the same. */
  signs: number;
  since: number;
}

/** The worker processes of a server, which are started again when they end. */
export class Workers {
  readonly page: SharedPage;
  /** Called with what the workers have answered. */
  onAnswers: (answers: readonly WorkerAnswer[]) => void = () => {};
  /** Returns the path of an instance's file that may be lent now; null: it may not. */
  lendable: (namespace: string, instanceId: string) => string | null = () => null;
  readonly lent: LentFiles;
  /** Answers that workers have reported since the start. */
  answered = 0;
  readonly #options: WorkersOptions;
  readonly #directory: string;
  readonly #configHash: string;
  readonly #secret = systemIds.secret(SECRET_BYTES);
  readonly #running = new Map<number, Running>();
  #address: WorkerAddress | null = null;
  /** The certificate of workers; null: HTTP. */
  #tls: Certificate | null = null;
  #isStopping = false;
  #count = 0;
  /** Workers in succession that have ended soon after their start. */
  #failures = 0;
  #cancelWatch = () => {};
  #stopped: Promise<void> | null = null;

  /** Makes the shared page, and the directory in which workers reach this process. */
  constructor(options: WorkersOptions) {
    this.#options = options;
    this.lent = new LentFiles({
      clock: options.clock,
      send: (place, message) => this.#send(place, message),
      end: (place) => this.#running.get(place)?.child.kill("SIGKILL"),
    });
    this.#configHash = options.configHash();
    this.#directory = mkdtempSync(join(tmpdir(), "platform-"));
    createPageFile(this.#page);
    this.page = new SharedPage(this.#page, { apart: join(options.order.dataDirectory, SYSTEM_FILE) });
  }

  get #page(): string {
    return join(this.#directory, "page");
  }

  get #socket(): string {
    return join(this.#directory, "main");
  }

  /** Opens the server that takes requests from the workers. */
  readonly openInner = (serving: ConstructorParameters<typeof InnerServer>[1]): InnerServer =>
    new InnerServer(
      {
        clock: this.#options.clock,
        at: { unix: this.#socket },
        secret: this.#secret,
        hold: ({ worker, id }, isHeld) => this.#send(worker, { kind: "hold", id, isHeld }),
        stopped: () => this.stop(),
      },
      serving,
    );

  /** Starts further workers on the address of the server. Resolves when all listen, or have failed to. */
  async start(count: number, address: WorkerAddress): Promise<void> {
    if (this.#isStopping) return;
    this.#address = address;
    makeWorkersLock(this.#options.order.dataDirectory);
    const first = this.#count;
    this.#count += count;
    this.#cancelWatch();
    this.#watch();
    await Promise.all(Array.from({ length: count }, (_, index) => this.#begin(first + index)));
  }

  /** The number of workers that were started, and are started again when they end. */
  get count(): number {
    return this.#count;
  }

  /** Returns what each place has counted, in their order. */
  counted(): WorkerFigures[] {
    return Array.from({ length: this.#count }, (_, place) => this.page.read(place));
  }

  /** Uses another certificate in all workers, and in those that start later. */
  renew(certificate: Certificate): void {
    this.#tls = certificate;
    for (const [place, { isReady }] of this.#running) if (isReady) this.#send(place, { kind: "renew", certificate });
  }

  /** Lets a worker end this share of its connections with their next answers. */
  shed(place: number, share: number): void {
    this.#send(place, { kind: "shed", share });
  }

  /** Returns the figures of each worker that listens. */
  figures(): ProcessFigures[] {
    const listening = [...this.#running].filter(([, { isReady }]) => isReady);
    return listening.map(([place, { child }]) => {
      const { answered, memoryKiB, loopUs } = this.page.read(place);
      const { pid } = child;
      return { pid, role: "worker", requests: answered, memory: memoryKiB * KIB, loopMs: loopUs / MICROSECONDS_PER_MS };
    });
  }

  /** Lets the workers answer what they have begun, and ends them. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#isStopping = true;
    this.#cancelWatch();
    const ended = [...this.#running].map(async ([place, { child }]) => {
      this.#send(place, { kind: "stop" });
      if (!(await endsWithin(child.exited, UNDER_WAY_MAX_MS, this.#options.clock))) child.kill("SIGKILL");
      await child.exited;
    });
    await Promise.all(ended);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #begin(place: number): Promise<void> {
    const { clock, logger, args } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const child = Bun.spawn([...ownCommand(), WORKER_COMMAND, ...args], {
      // The process ends with the server, even when the server is killed.
      env: { ...process.env, BUN_FEATURE_FLAG_NO_ORPHANS: "1" },
      stdio: ["ignore", "inherit", "inherit"],
      ipc: (message: FromWorker) => {
        if (message.kind === "waiting") {
          running.tls = this.#tls;
          this.#send(place, { kind: "begin", order: this.#order(place) });
        }
        if (message.kind === "ask") {
          const path = this.lendable(message.namespace, message.instanceId);
          if (path !== null) this.lent.lend(place, path);
        }
        if (message.kind === "returned") this.lent.returned(message.id);
        if (message.kind === "answers") this.#report(answersIn(message.answers));
        if (message.kind === "failed") logger.error("workers: a worker cannot start", { reason: message.message });
        if (message.kind !== "ready") return;
        running.isReady = true;
        // It was renewed while the worker began.
        if (this.#tls !== null && this.#tls !== running.tls)
          this.#send(place, { kind: "renew", certificate: this.#tls });
        resolve();
      },
    });
    const now = performance.now();
    const running: Running = { child, startedAt: now, isReady: false, tls: this.#tls, signs: 0, since: now };
    this.#running.set(place, running);
    void child.exited.then((code) => {
      this.#running.delete(place);
      this.lent.gone(place);
      resolve();
      if (this.#isStopping) return;
      const livedMs = performance.now() - running.startedAt;
      logger.warn("workers: a worker has ended, and is started again", {
        pid: child.pid,
        code,
        signal: child.signalCode,
      });
      this.#failures = livedMs < LIVED_MS ? this.#failures + 1 : 0;
      const delayMs = this.#failures === 0 ? 0 : Math.min(RESTART_MAX_MS, RESTART_MS * 2 ** (this.#failures - 1));
      clock.after(delayMs, () => {
        if (!this.#isStopping) void this.#begin(place);
      });
    });
    return promise;
  }

  #report(answers: readonly WorkerAnswer[]): void {
    this.answered += answers.length;
    this.onAnswers(answers);
  }

  #order(place: number): WorkerOrder {
    if (this.#address === null) throw new Error("a worker asks for its order before the server listens");
    const main = { at: { unix: this.#socket }, secret: this.#secret, worker: place };
    return {
      ...this.#options.order,
      ...this.#address,
      tls: this.#tls,
      page: this.#page,
      main,
      configHash: this.#configHash,
    };
  }

  #send(place: number, message: ToWorker): void {
    const child = this.#running.get(place)?.child;
    // It has just ended.
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.send(message);
  }

  /** Kills workers that give no sign of life: they are started again. */
  #watch(): void {
    const now = performance.now();
    for (const [place, running] of this.#running) {
      const { signs } = this.page.read(place);
      if (signs !== running.signs) Object.assign(running, { signs, since: now });
      if (now - running.since > (running.isReady ? SILENT_MAX_MS : READY_MAX_MS)) running.child.kill("SIGKILL");
    }
    this.#cancelWatch = this.#options.clock.after(SIGN_MS, () => this.#watch());
  }
}
