import { AsyncLocalStorage } from "node:async_hooks";
import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { MAILBOX_MAX, MAILBOX_MAX_CHARS, MAILBOXES_MAX_CHARS } from "../limits.ts";
import type { RoomMeter } from "./room-meter.ts";

/** Started tasks at the front of a queue before it is compacted. */
const TAKEN_MAX = 1_000;

export type Task = () => MaybePromise<void>;

interface Waiting {
  task: Task;
  chars: number;
}

/** Replaces a started task, so that the queue does not keep its message in memory. */
const TAKEN: Waiting = { task: () => {}, chars: 0 };

/** Characters of waiting messages in the mailboxes of all rooms. */
export interface AllWaitingChars {
  chars: number;
}

/**
 * Runs tasks one after another, in order of arrival; at once when none is running. Tasks wait while the room has used up its
 * time. Each runs in the asynchronous context of its poster.
 */
export class Mailbox {
  #waiting: Waiting[] = [];
  #next = 0;
  #isRunning = false;
  /** Whether no task is running, and the next one waits for time. */
  #isDeferred = false;
  #idle: (() => void)[] = [];
  /** Characters of messages waiting here. Counted in the total of all rooms as well. */
  #chars = 0;
  readonly #all: AllWaitingChars;
  readonly #meter: RoomMeter;
  readonly #onFailure: (cause: unknown) => void;

  /** `onFailure` receives what a task throws or rejects with; tasks should do neither. The next task runs nevertheless. */
  constructor(meter: RoomMeter, all: AllWaitingChars, onFailure: (cause: unknown) => void) {
    this.#meter = meter;
    this.#all = all;
    this.#onFailure = onFailure;
  }

  /** Queues a task. `chars`: length of the message that it handles. false: not run, because too many tasks or characters wait. */
  post(task: Task, chars = 0): boolean {
    const isFull = this.#waiting.length - this.#next >= MAILBOX_MAX;
    const areTooMany = this.#chars + chars > MAILBOX_MAX_CHARS || this.#all.chars + chars > MAILBOXES_MAX_CHARS;
    if (isFull || areTooMany) return false;
    if (!this.#isRunning && this.#meter.isFree) {
      this.#isRunning = true;
      const isDone = this.#done(this.#begin(task));
      if (isDone && this.hasWaiting) this.#run();
      else if (isDone) this.#rest();
      return true;
    }
    // Bound to its poster's context: otherwise it would run in that of the task before it.
    this.#waiting.push({ task: AsyncLocalStorage.bind(task), chars });
    this.#count(chars);
    if (!this.#isRunning) this.#run();
    return true;
  }

  /** Whether tasks wait behind the running one. */
  get hasWaiting(): boolean {
    return this.#next < this.#waiting.length;
  }

  /** Drops the waiting tasks. A running task continues. */
  clear(): void {
    this.#count(-this.#chars);
    this.#forget();
    if (this.#isDeferred) this.#rest();
  }

  /** Resolves when no task is running or waiting. */
  whenIdle(): Promise<void> {
    if (!this.#isRunning) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #run(): void {
    this.#isRunning = true;
    while (this.hasWaiting) {
      if (this.#meter.defers(this.#resume)) {
        this.#isDeferred = true;
        return;
      }
      if (!this.#done(this.#begin(this.#take()))) return;
    }
    this.#rest();
  }

  /** Follows the result of a task. false: the task is awaited, and the others run after it. */
  #done(running: MaybePromise<void>): boolean {
    if (!isPromise(running)) return true;
    void running.catch(this.#onFailure).then(() => this.#run());
    return false;
  }

  readonly #resume = (): void => {
    // It may have been cleared meanwhile.
    if (!this.#isDeferred) return;
    this.#isDeferred = false;
    this.#run();
  };

  #rest(): void {
    this.#isDeferred = false;
    this.#isRunning = false;
    if (this.#idle.length > 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #begin(task: Task): MaybePromise<void> {
    try {
      return this.#meter.measure(task);
    } catch (cause) {
      this.#onFailure(cause);
    }
  }

  #take(): Task {
    const waiting = this.#waiting[this.#next];
    if (waiting === undefined) throw new Error("the mailbox is empty");
    this.#waiting[this.#next++] = TAKEN;
    this.#count(-waiting.chars);
    if (this.#next === this.#waiting.length) this.#forget();
    else if (this.#next === TAKEN_MAX) this.#compact();
    return waiting.task;
  }

  #count(chars: number): void {
    this.#chars += chars;
    this.#all.chars += chars;
  }

  #compact(): void {
    this.#waiting.splice(0, this.#next);
    this.#next = 0;
  }

  #forget(): void {
    this.#waiting = [];
    this.#next = 0;
  }
}
