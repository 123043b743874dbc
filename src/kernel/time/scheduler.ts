import { AT_ONCE_MS, TURN_MS } from "../limits.ts";
import type { MaybePromise } from "../maybe-promise.ts";
import { FairQueue, type Queued } from "./fair-queue.ts";

/** Yields to the event loop in the middle of long work. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export interface SchedulerOptions {
  /** Pieces of work that run at once. Default 1. */
  atOnce?: number;
  /** Adds so many to `atOnce` once `waitingMin` pieces wait, until none does. Default: none. */
  further?: { atOnce: number; waitingMin: number };
  /** Places of the queue, and of one caller in it. Default: unbounded; the caller bounds its work. */
  waitingMax?: number;
  waitingPerCallerMax?: number;
  /** Creates the error of work that finds no place. */
  refusal?: () => Error;
  /** Time that all work may take in one turn of the event loop. Default TURN_MS. */
  turnMs?: number;
  /** Milliseconds with fractions. Tests simulate it. */
  now?: () => number;
  /** Runs `work` in the next turn of the event loop. */
  nextTurn?: (work: () => void) => void;
}

/** Caller, places and cancellation of a piece of work. Callers take turns. */
export interface Whose {
  /** Caller of the work. Default: one caller for all work. */
  caller?: string;
  /** Places of the queue that the work takes. Default 1. */
  places?: number;
  /** Ends the work with its reason, whether it waits or is between two steps. */
  signal?: AbortSignal | undefined;
}

interface Entry extends Queued {
  begin(): void;
  refuse(cause: Error): void;
}

/** Paces a piece of long work that awaits something in between, such as the result of a rule. */
export interface Pace {
  /** Reports whether the time that the work shares with others in this turn is used up. */
  isDue(): boolean;
  /** Resolves when the work may continue: one waiting piece of work in each turn of the event loop. */
  next(): Promise<void>;
}

/**
 * Shares the event loop between pieces of work of one kind, so that twenty at once delay everything else no more than one does:
 *
 * - **a budget**: together they take `turnMs` of a turn, counted from their first moment in it; the rest waits for later turns;
 * - **fair by caller**: callers take turns, however much work one of them has waiting;
 * - **bounded**: a full queue refuses the newest work of the caller who has the most;
 * - **cancellable**: by `signal`.
 *
 * Work runs in the asynchronous context of its caller.
 */
export class Scheduler {
  readonly #atOnce: number;
  readonly #further: { atOnce: number; waitingMin: number };
  readonly #waitingPerCallerMax: number;
  readonly #refusal: () => Error;
  readonly #turnMs: number;
  readonly #now: () => number;
  readonly #nextTurn: (work: () => void) => void;
  readonly #waiting: FairQueue<Entry>;
  #running = 0;
  /** Time at which work first ran in this turn of the event loop; null: none has. */
  #startedAt: number | null = null;
  readonly #paused: (() => void)[] = [];

  constructor(options: SchedulerOptions = {}) {
    this.#atOnce = options.atOnce ?? 1;
    this.#further = options.further ?? { atOnce: 0, waitingMin: Number.POSITIVE_INFINITY };
    this.#waitingPerCallerMax = options.waitingPerCallerMax ?? Number.POSITIVE_INFINITY;
    this.#refusal = options.refusal ?? (() => new Error("too much work is waiting"));
    this.#turnMs = options.turnMs ?? TURN_MS;
    this.#now = options.now ?? (() => performance.now());
    this.#nextTurn = options.nextTurn ?? ((work) => void setImmediate(work));
    this.#waiting = new FairQueue(options.waitingMax ?? Number.POSITIVE_INFINITY);
  }

  /** Whether work may take more of this turn of the event loop. */
  get hasTime(): boolean {
    return this.#now() - this.#startOfTurn() < this.#turnMs;
  }

  /** Resolves when this turn of the event loop, or the first later one that has any, has time left. */
  async whenTime(): Promise<void> {
    while (!this.hasTime) await new Promise<void>((resolve) => this.#nextTurn(resolve));
  }

  /** Resolves to the result of `work`, which begins in its turn. The next work begins when what it awaits has settled. */
  async inTurn<T>(work: () => MaybePromise<T>, whose: Whose = {}): Promise<T> {
    const turn = this.#enter(whose);
    if (turn !== undefined) await turn;
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  /** Resolves to the result of `steps`, which run in order, over as many turns of the event loop as they need. */
  async run<T>(steps: Generator<void, T>, whose: Whose = {}): Promise<T> {
    // Never synchronous: the caller may still add to what the steps work on.
    await this.#enter(whose);
    try {
      for (;;) {
        if (!this.hasTime) await this.whenTime();
        if (whose.signal?.aborted === true) {
          steps.return(undefined as T);
          throw whose.signal.reason;
        }
        const step = steps.next();
        if (step.done === true) return step.value;
      }
    } finally {
      this.#leave();
    }
  }

  /**
   * Returns the result of `work`, which takes a moment: at once where this turn has time left and nothing waits, otherwise in its
   * turn. What it awaits itself delays nothing else.
   */
  soon<T>(work: () => MaybePromise<T>, whose?: Whose): MaybePromise<T> {
    if (this.#running === 0 && this.#now() - this.#startOfTurn() < AT_ONCE_MS) return work();
    return this.run(begun(work), whose).then(({ result }) => result);
  }

  /** Begins a piece of work that decides by itself when to pause. */
  pace(): Pace {
    let startedAt = this.#startOfTurn();
    return {
      isDue: () => this.#now() - startedAt >= this.#turnMs,
      next: () =>
        new Promise((resolve) => {
          this.#paused.push(() => {
            startedAt = this.#startOfTurn();
            resolve();
          });
          if (this.#paused.length === 1) this.#nextTurn(this.#resumeOne);
        }),
    };
  }

  readonly #resumeOne = (): void => {
    this.#paused.shift()?.();
    if (this.#paused.length > 0) this.#nextTurn(this.#resumeOne);
  };

  #startOfTurn(): number {
    if (this.#startedAt === null) {
      this.#startedAt = this.#now();
      this.#nextTurn(() => {
        this.#startedAt = null;
      });
    }
    return this.#startedAt;
  }

  /** Waits for a place; undefined: the work may begin now. Errors: there is no place; the reason of the signal. */
  #enter({ caller = "", places = 1, signal }: Whose): Promise<void> | undefined {
    signal?.throwIfAborted();
    if (this.#running < this.#atOnce) {
      this.#running += 1;
      return undefined;
    }
    if (this.#waiting.sizeOf(caller) >= this.#waitingPerCallerMax) throw this.#refusal();
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.remove(entry);
        reject(signal?.reason);
      };
      const over = (): void => signal?.removeEventListener("abort", onAbort);
      const entry: Entry = {
        caller,
        places,
        begin() {
          over();
          resolve();
        },
        refuse(cause) {
          over();
          reject(cause);
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      for (const refused of this.#waiting.add(entry)) refused.refuse(this.#refusal());
      const { atOnce, waitingMin } = this.#further;
      if (this.#waiting.size < waitingMin || this.#running >= this.#atOnce + atOnce) return;
      this.#running += 1;
      this.#leave();
    });
  }

  /** Passes the place of finished work to the next in line. */
  #leave(): void {
    const next = this.#waiting.take();
    if (next === null) this.#running -= 1;
    else next.begin();
  }
}

/** Runs `work` as one step. The result is in an object, because the next work does not wait for a promise. */
function* begun<T>(work: () => T): Generator<void, { result: T }> {
  yield;
  return { result: work() };
}
