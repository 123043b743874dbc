import type { JsonValue } from "../../../kernel/json/json.ts";
import type { RuleContext } from "../../config/types.ts";

// How rules are called with a context, for all areas that have rules. `tables` has the run time (`TablesArea.lookups`).
//
//   const call = lookups.begin();                          // one for each request or message
//   const answer = rule(auth, file, call.context(null));   // a new context for each call of a rule
//   call.check();                                          // 503 where the request's rules have looked too much up
//
// Realtime and rooms ask again when data changes: `begin({ watch })` reports what the rules look at, while they do, to a
// `LookupWatch` of `LookupWatches` (watches.ts), and `LookupWatches.touched` names those whom a commit concerns.

/** The namespace and instance that a rule is about. `instanceId` is null in a static namespace. */
export interface RuleAddress {
  namespace: string;
  instanceId: string | null;
}

/**
 * Something a rule has looked at: the records of a table whose `fields` have these `values`, whether there are any or not.
 * Another result of the lookup needs a change of such a record. `fields` are the id, or those by which an index was entered;
 * a lookup with `in` looks at one place for each value.
 */
export interface LookedAt extends RuleAddress {
  table: string;
  fields: readonly string[];
  values: readonly JsonValue[];
}

/** As the `instanceId` of a place: in each instance of the namespace. No instance has this id. */
export const ANY_INSTANCE = "*";

/** Receives what rules look at, before they have their answer. The same place may come more than once. */
export interface LookupWatch {
  lookedAt(place: LookedAt): void;
}

/** The lookups of one request, message or subscription: each different one is made once. */
export interface LookupCall {
  /** The last argument of a rule. null: the rule is about no record or instance. */
  context(about: RuleAddress | null): RuleContext;
  /** Call after each rule, also one that threw. Errors: 503 when a request's rules made too many lookups, also if they caught it. */
  check(): void;
}

export interface Lookups {
  /**
   * `for`: a request (default), whose `check` throws beyond the bound; or a subscription, whose rule is denied then: its
   * lookups throw. `watch`: nothing by default.
   */
  begin(options?: { for?: "request" | "subscription"; watch?: LookupWatch }): LookupCall;
}
