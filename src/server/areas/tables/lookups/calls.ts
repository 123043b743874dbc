import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { LookedAt, RuleAddress } from "../../../access/lookups/lookups.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { HookContext, RuleContext } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import type { ParsedFilter } from "../filters/filter.ts";
import type { LookupSource } from "./lookup-source.ts";

/** A lookup made by a rule, which can be repeated. */
export interface MadeLookup {
  value: unknown;
  again(): unknown;
}

/** One call of a rule: its context, and the lookups that it makes. */
export interface RuleCall {
  readonly context: RuleContext;
  readonly hasLooked: boolean;
  /** Lookups made so far. */
  readonly made: ReadonlyMap<string, MadeLookup>;
  /** Answers these lookups with the given results. */
  replay(results: ReadonlyMap<string, unknown>): void;
}

/** Creates the calls of one request's rules about one namespace and instance. */
export interface RuleScope {
  /** The namespace and instance that the rules are about. */
  readonly about: RuleAddress;
  /** Returns the scope of the rules of another namespace, which has no instances, within the same request. */
  at(namespace: string): RuleScope;
  /** Whether the rules' lookups are recorded, even when their answer is not used. */
  readonly isWatched: boolean;
  call(): RuleCall;
  /** Whether a record of a table in the rules' own file matches. Errors: as a lookup. */
  some(table: string, filter: ParsedFilter): boolean;
  /** Reports that the rules depend on these records of a table in their own file. */
  lookedAt(place: Pick<LookedAt, "table" | "fields" | "values">): void;
  /** Evaluates again the rule that has opened the instance, if it decided by a lookup; null otherwise. */
  reopen: ((context: RuleContext) => MaybePromise<unknown>) | null;
  /** Returns the scope for other work, which shares no results and no bounds with this request. */
  afresh(): RuleScope;
  /** Checks as `LookupCall.check` does. */
  check(): void;
  /**
   * Runs a write, with lookups of its own file reading its transaction. `work` receives the transaction to use, which detects
   * changes.
   */
  inside<T>(tx: Transaction, work: (tx: Transaction) => T): T;
}

/** Returns `app` with lookups in the hook's own file. */
export function hookContext(app: AppAccess, { context }: RuleCall): HookContext {
  const { namespace, instanceId, table } = context;
  // Inherits, because the accessors of `app` are created at their first use.
  return Object.assign(Object.create(app) as AppAccess, { namespace: namespace ?? "", instanceId, table });
}

/** Records the lookups of one call of a rule inside a write. */
export type Recording = ReturnType<typeof createRecording>;

export const NOTHING_MADE: ReadonlyMap<string, MadeLookup> = new Map();

export function createRecording() {
  const made = new Map<string, MadeLookup>();
  let replayed: ReadonlyMap<string, unknown> | null = null;
  return {
    made,
    /** Records the lookups of one table, whose keys get `prefix`. */
    of:
      (prefix: string, once: LookupSource["once"]): LookupSource["once"] =>
      (key, read) => {
        const known = prefix + key;
        // Results of this key have the type of `read`.
        const value =
          replayed?.has(known) === true ? (replayed.get(known) as ReturnType<typeof read>) : once(key, read);
        made.set(known, { value, again: () => once(key, read) });
        return value;
      },
    /** Answers these lookups with the given results. */
    replay(results: ReadonlyMap<string, unknown>): void {
      replayed = results;
    },
  };
}
