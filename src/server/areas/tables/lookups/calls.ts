import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { RuleContext } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";

/** A lookup that a rule has made, which can be made again. */
export interface MadeLookup {
  value: unknown;
  again(): unknown;
}

/** One call of a rule: its context, and the lookups that it makes. */
export interface RuleCall {
  readonly context: RuleContext;
  readonly hasLooked: boolean;
  /** What it has looked up. */
  readonly made: ReadonlyMap<string, MadeLookup>;
  /** Answers these lookups as given. */
  replay(results: ReadonlyMap<string, unknown>): void;
}

/** How one request's rules about one namespace and instance are called. */
export interface RuleScope {
  /** Whether what the rules look at is noted, also where their answer is of no use. */
  readonly isWatched: boolean;
  call(): RuleCall;
  /** Asks the rule that has opened the instance again, if it has decided by a lookup; null elsewhere. */
  reopen: ((context: RuleContext) => MaybePromise<unknown>) | null;
  /** The same for other work, which shares no results and no bounds with this request. */
  afresh(): RuleScope;
  /** As `LookupCall.check`. */
  check(): void;
  /**
   * Runs a write in whose transaction the lookups of its own file read. `work` gets the transaction to use, which notices
   * changes.
   */
  inside<T>(tx: Transaction, work: (tx: Transaction) => T): T;
}
