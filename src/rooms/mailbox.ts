import type { MaybePromise } from "../kernel/maybe-promise.ts";
import { isPromise } from "../kernel/maybe-promise.ts";
import { MAILBOX_MAX } from "./limits.ts";

export type Task = () => MaybePromise<void>;

/** Tasks that run in one go before the event loop gets its turn. */
const TASKS_PER_TURN = 100;

/** Tasks run one after another, in order of arrival; one that finds nobody before it runs at once. */
export class Mailbox {
  #waiting: Task[] = [];
  #next = 0;
  #isRunning = false;
  #idle: (() => void)[] = [];
  readonly #onFailure: (cause: unknown) => void;

  /** `onFailure` hears of tasks that throw or reject, which none is meant to do; the next one runs all the same. */
  constructor(onFailure: (cause: unknown) => void) {
    this.#onFailure = onFailure;
  }

  /** false: MAILBOX_MAX tasks wait already, and this one does not run. */
  post(task: Task): boolean {
    if (this.#waiting.length - this.#next >= MAILBOX_MAX) return false;
    this.#waiting.push(task);
    if (!this.#isRunning) this.#run();
    return true;
  }

  /** Nothing runs and nothing waits. */
  get isIdle(): boolean {
    return !this.#isRunning;
  }

  /** Whether something waits behind the task that runs. */
  get hasWaiting(): boolean {
    return this.#next < this.#waiting.length;
  }

  /** Drops what waits; what runs goes on. */
  clear(): void {
    this.#waiting = [];
    this.#next = 0;
  }

  whenIdle(): Promise<void> {
    if (!this.#isRunning) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #run(): void {
    this.#isRunning = true;
    for (let count = 0; this.hasWaiting; count++) {
      if (count === TASKS_PER_TURN) {
        setImmediate(() => this.#run());
        return;
      }
      const running = this.#begin(this.#take());
      if (isPromise(running)) {
        void running.catch(this.#onFailure).then(() => this.#run());
        return;
      }
    }
    this.#isRunning = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #begin(task: Task): MaybePromise<void> {
    try {
      return task();
    } catch (cause) {
      this.#onFailure(cause);
    }
  }

  #take(): Task {
    const task = this.#waiting[this.#next++];
    if (task === undefined) throw new Error("the mailbox is empty");
    if (this.#next === this.#waiting.length) this.clear();
    return task;
  }
}
