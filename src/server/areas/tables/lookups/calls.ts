import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { HookContext, RuleContext } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import type { LookupSource } from "./table-lookup.ts";

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

/** `app` with lookups in the hook's own file. */
export function hookContext(app: AppAccess, { context }: RuleCall): HookContext {
  const { namespace, instanceId, table } = context;
  // Inherits, because the accessors of `app` are made at their first use.
  return Object.assign(Object.create(app) as AppAccess, { namespace: namespace ?? "", instanceId, table });
}

/** The lookups of one call of a rule inside a write. */
export interface Recording {
  readonly made: ReadonlyMap<string, MadeLookup>;
  /** Records the lookups of one table, whose keys get `prefix`. */
  of(prefix: string, once: LookupSource["once"]): LookupSource["once"];
  /** Answers these lookups as given. */
  replay(results: ReadonlyMap<string, unknown>): void;
}

export const NOTHING_MADE: ReadonlyMap<string, MadeLookup> = new Map();

export function createRecording(): Recording {
  const made = new Map<string, MadeLookup>();
  let replayed: ReadonlyMap<string, unknown> | null = null;
  return {
    made,
    of: (prefix, once) => (key, read) => {
      const known = prefix + key;
      // Results of this key have the type of `read`.
      const value = replayed?.has(known) === true ? (replayed.get(known) as ReturnType<typeof read>) : once(key, read);
      made.set(known, { value, again: () => once(key, read) });
      return value;
    },
    replay(results) {
      replayed = results;
    },
  };
}
