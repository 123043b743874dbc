import { RULE_TIMEOUT_MS } from "../../access/limits.ts";
import type { Clock } from "../../kernel/clock.ts";
import { within } from "../../kernel/deadline.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";

/**
 * Thrown out of a transaction when a rule or hook has to be awaited: the write is undone, the answer awaited outside,
 * and the write run again, where the same question about the same records finds its answer.
 */
export class Suspended extends Error {
  readonly settled: Promise<unknown>;
  constructor(settled: Promise<unknown>) {
    super("a rule or hook is being awaited");
    this.settled = settled;
  }
}

/** The answers to all of these questions; what has to be awaited is awaited together. */
export function together(questions: readonly (() => boolean)[]): boolean[] {
  const awaited: Promise<unknown>[] = [];
  const answers = questions.map((question) => {
    try {
      return question();
    } catch (cause) {
      if (!(cause instanceof Suspended)) throw cause;
      awaited.push(cause.settled);
      return false;
    }
  });
  if (awaited.length > 0) throw new Suspended(Promise.all(awaited));
  return answers;
}

type Outcome = { ok: true; value: unknown } | { ok: false; cause: unknown };

/**
 * The answers of one request's rules and hooks. Each question (a function with its arguments) is asked once: an answer
 * counts for the very records that it was given about, so a record that changed meanwhile is asked about anew.
 */
export class Decisions {
  readonly #clock: Clock;
  readonly #answers = new Map<unknown, Map<string, Outcome>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The answer, or a throw of what the function threw; `DeadlineError` where it never answers. Inside a transaction only: throws `Suspended` for a promise. */
  ask<Args extends readonly unknown[], T>(question: (...args: Args) => MaybePromise<T>, args: Args, about: unknown): T {
    let known = this.#answers.get(question);
    // Records are compared by what they say; most rules answer at once and never come here twice.
    const key = known === undefined ? null : JSON.stringify(about);
    const answer = key === null ? undefined : known?.get(key);
    if (answer !== undefined) {
      if (!answer.ok) throw answer.cause;
      // Kept under this very question, which returns nothing else.
      return answer.value as T;
    }
    const value = question(...args);
    if (!isPromise(value)) return value;
    if (known === undefined) {
      known = new Map();
      this.#answers.set(question, known);
    }
    const answers = known;
    const aboutKey = key ?? JSON.stringify(about);
    throw new Suspended(
      within(this.#clock, RULE_TIMEOUT_MS, value).then(
        (settled) => answers.set(aboutKey, { ok: true, value: settled }),
        (cause: unknown) => answers.set(aboutKey, { ok: false, cause }),
      ),
    );
  }
}
