import type { JsonValue } from "../../../kernel/json/json.ts";
import type { RuleContext } from "../../config/types.ts";

// The calling convention of rules with a context, for all areas that have rules. `tables` has the runtime (`TablesArea.lookups`).
//
//   const call = lookups.begin();                          // one for each request or message
//   const answer = rule(auth, file, call.context(null));   // a new context for each call of a rule
//   call.check();                                          // 503 where the request's rules have made too many lookups
//
// Realtime and rooms re-evaluate rules when data changes: `begin({ watch })` reports what the rules look at, while they do, to a
// `LookupWatch` of `LookupWatches` (watches.ts), and `LookupWatches.touched` finds the watchers that a commit concerns.

/** The namespace and instance of a rule's subject. `instanceId` is null in a static namespace. */
export interface RuleAddress {
  namespace: string;
  instanceId: string | null;
}

/**
 * A place that a rule has looked at: the records of a table whose `fields` have these `values`, whether any exist or not. The
 * lookup's result changes only with such a record. `fields` are the id, or the fields of the index lookup; a lookup with `in` looks
 * at one place for each value.
 */
export interface LookedAt extends RuleAddress {
  table: string;
  fields: readonly string[];
  values: readonly JsonValue[];
}

/** The `instanceId` of a place in every instance of the namespace. No instance has this id. */
export const ANY_INSTANCE = "*";

/** Receives the places that rules look at, before the rules have their answer. The same place may be reported more than once. */
export interface LookupWatch {
  lookedAt(place: LookedAt): void;
}

/** The lookups of one request, message or subscription, memoized. */
export interface LookupCall {
  /** Returns the last argument of a rule. null: the rule is about no record or instance. */
  context(about: RuleAddress | null): RuleContext;
  /**
   * Checks the number of lookups; call it after each rule, also one that threw. Errors: 503 when a request's rules made too many
   * lookups, even if they caught the error.
   */
  check(): void;
}

export interface Lookups {
  /**
   * Begins a call. `for`: a request (default), whose `check` throws beyond the bound; or a subscription, whose lookups then
   * throw, so that its rule denies. `watch`: nothing by default.
   */
  begin(options?: { for?: "request" | "subscription"; watch?: LookupWatch }): LookupCall;
}
