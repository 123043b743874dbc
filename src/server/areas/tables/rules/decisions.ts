import type { Clock } from "../../../../kernel/clock.ts";
import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { askHook, askRule, inPhase } from "../../../../kernel/observing/request-trace.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import { RULE_TIMEOUT_MS } from "../../../access/limits.ts";
import type { RuleCall } from "../lookups/calls.ts";

/**
 * Thrown inside a transaction when a rule or hook returned a promise. The write is rolled back, the promise is awaited, and the
 * write restarts; the same call with the same records then finds its answer.
 */
export class Suspended extends Error {
  readonly settled: Promise<unknown>;
  constructor(settled: Promise<unknown>) {
    super("a rule or hook is being awaited");
    this.settled = settled;
  }
}

/** Thrown where the file of a write has to carry out first what another file has done. The write then runs again. */
export class Behind extends Suspended {}

/** Returns the results of all `questions`; their promises are awaited together. */
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

/** Result of a function. `call`: its lookups. */
type Outcome = ({ ok: true; value: unknown } | { ok: false; cause: unknown }) & { call: RuleCall | null };

/**
 * Answers of one request's rules and hooks, memoised by arguments. An answer is valid only for the exact records that the
 * function saw, and while its lookups have the same results: otherwise the function is called again.
 */
export class Decisions {
  readonly #clock: Clock;
  readonly #answers = new Map<unknown, Map<string, Outcome>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns the answer, inside a transaction only. Throws what the function threw; `DeadlineError` when its promise does not
   * settle in time; `Suspended` for a pending promise. `call`: the call whose context is among `args`; `phase`: where its time is
   * counted; `name`: for the story of the request; null: what it
   * asks is noted there.
   */
  ask<Args extends readonly unknown[], T>(
    question: (...args: Args) => MaybePromise<T>,
    args: Args,
    about: unknown,
    {
      call = null,
      phase = "rules",
      name = null,
    }: { call?: RuleCall | null; phase?: "rules" | "hooks"; name?: string | null } = {},
  ): T {
    let known = this.#answers.get(question);
    // Records are compared by their JSON. Most rules return no promise and are never called twice.
    const key = known === undefined ? null : JSON.stringify(about);
    const answer = key === null ? undefined : known?.get(key);
    if (answer !== undefined) {
      const now = answer.call === null ? null : resultsNow(answer.call);
      if (now === null) {
        if (!answer.ok) throw answer.cause;
        // Stored for this function, which returns this type.
        return answer.value as T;
      }
      // After its first `await` the function sees committed data. Lookups that it repeats are answered with the results in this
      // transaction.
      call?.replay(now);
    }
    const ask = () => question(...args);
    const value = name === null ? inPhase(phase, ask) : (phase === "rules" ? askRule : askHook)(name, ask);
    if (!isPromise(value)) return value;
    if (known === undefined) {
      known = new Map();
      this.#answers.set(question, known);
    }
    const answers = known;
    const aboutKey = key ?? JSON.stringify(about);
    throw new Suspended(
      within(this.#clock, RULE_TIMEOUT_MS, value).then(
        (settled) => answers.set(aboutKey, { ok: true, value: settled, call }),
        (cause: unknown) => answers.set(aboutKey, { ok: false, cause, call }),
      ),
    );
  }
}

/** Returns the results of the call's lookups in this transaction; null when they are the same as before. */
function resultsNow({ made }: RuleCall): ReadonlyMap<string, unknown> | null {
  const now = new Map<string, unknown>();
  let isSame = true;
  for (const [key, { value, again }] of made) {
    const result = again();
    now.set(key, result);
    isSame &&= result === value || Bun.deepEquals(result, value);
  }
  return isSame ? null : now;
}
