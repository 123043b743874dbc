import { reasonOf } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { Lookup, RuleContext } from "../../../config/types.ts";
import { TRACED_FILTER_CHARACTERS, TRACED_LOOKUPS_MAX } from "../limits.ts";
import type { RuleCall, RuleScope } from "../lookups/calls.ts";
import type { TableAction } from "../rules/calling.ts";

/** Name of a rule. `open` and `create` are rules of an instance. */
export type RuleName = "open" | "create" | TableAction;

/** One lookup made by a rule. */
export interface TracedLookup {
  rule: RuleName;
  namespace: string;
  instanceId: string | null;
  table: string;
  method: string;
  /** Id of a `get`; null for the others. */
  id: string | null;
  /** Filter as JSON, cut after TRACED_FILTER_CHARACTERS; null for `get`. */
  filter: string | null;
  /** Number of records found; for `exists`, 1 when there is one. */
  found: number;
  ms: number;
  error: string | null;
}

/** Lookups of one call of a rule. `isFinal`: its answer is about the record, and not only about the caller. */
interface TracedCall {
  isFinal: boolean;
  lookups: TracedLookup[];
  count: number;
}

/** Lookups of the rules of one operation. */
export class RuleTrace {
  readonly #calls = new Map<RuleName, TracedCall>();

  /** Returns the scope for the calls of one rule. A later call replaces an earlier one, which may have seen no record. */
  scope(scope: RuleScope, rule: RuleName, { isFinal }: { isFinal: boolean }): RuleScope {
    return { ...scope, call: () => this.#traced(scope.call(), rule, isFinal) };
  }

  /** Returns the lookups of these rules, at most TRACED_LOOKUPS_MAX, and their total number. */
  lookupsOf(rules: ReadonlySet<RuleName>): { lookups: TracedLookup[]; lookupCount: number } {
    const calls = [...this.#calls].filter(([rule]) => rules.has(rule)).map(([, call]) => call);
    return {
      lookups: calls.flatMap(({ lookups }) => lookups).slice(0, TRACED_LOOKUPS_MAX),
      lookupCount: calls.reduce((count, call) => count + call.count, 0),
    };
  }

  #traced(call: RuleCall, rule: RuleName, isFinal: boolean): RuleCall {
    const own: TracedCall = { isFinal, lookups: [], count: 0 };
    // After a rule was awaited, its operation runs again: the second call is made only if the first answer is invalid.
    if (!(isFinal && this.#calls.get(rule)?.isFinal === true)) this.#calls.set(rule, own);
    const note: Note = (lookup) => {
      if (isFinal) this.#calls.set(rule, own);
      own.count++;
      if (own.lookups.length < TRACED_LOOKUPS_MAX) own.lookups.push({ rule, ...lookup });
    };
    const { context } = call;
    return {
      context: tracedContext(context, note),
      get hasLooked() {
        return call.hasLooked;
      },
      get made() {
        return call.made;
      },
      replay: (results) => call.replay(results),
    };
  }
}

type Note = (lookup: Omit<TracedLookup, "rule">) => void;

function tracedContext(context: RuleContext, note: Note): RuleContext {
  const { namespace, instanceId, sent } = context;
  return {
    namespace,
    instanceId,
    sent,
    table: (table) => traced(context.table(table), { namespace: namespace ?? "", instanceId, table }, note),
    db(other, instance) {
      const file = context.db(other, instance);
      const address = { namespace: other, instanceId: instance ?? null };
      return { table: (table) => traced(file.table(table), { ...address, table }, note) };
    },
  };
}

function traced(lookup: Lookup, address: Pick<TracedLookup, "namespace" | "instanceId" | "table">, note: Note): Lookup {
  const noted = <T>(
    about: Pick<TracedLookup, "method" | "id" | "filter">,
    look: () => T,
    countOf: (result: T) => number,
  ): T => {
    const startedAt = performance.now();
    let found = 0;
    let error: string | null = null;
    try {
      const result = look();
      found = countOf(result);
      return result;
    } catch (cause) {
      error = causeText(cause);
      throw cause;
    } finally {
      note({ ...address, ...about, found, ms: millisSince(startedAt), error });
    }
  };
  return tracedQuery(lookup, noted);
}

type Noted = <T>(
  about: Pick<TracedLookup, "method" | "id" | "filter">,
  look: () => T,
  countOf: (result: T) => number,
) => T;

/** Methods that ask for records. All others give another query. */
const ASKING = new Set(["get", "first", "list", "page", "exists", "count", "aggregate"]);

/** Returns a query whose answers are noted, and those of the queries that it gives. */
function tracedQuery<Query extends object>(query: Query, noted: Noted): Query {
  return new Proxy(query, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function" || typeof name !== "string") return member;
      return (...given: unknown[]) => {
        const ask = (): unknown => Reflect.apply(member, target, given);
        if (!ASKING.has(name)) return tracedQuery(ask() as object, noted);
        const filter = name === "get" ? null : filterText(isFormer(name, given) ? given[0] : conditionsOf(target));
        return noted({ method: name, id: name === "get" ? String(given[0]) : null, filter }, ask, countOf);
      };
    },
  });
}

/** Returns the conditions of a query. */
const conditionsOf = (query: object): unknown => {
  const terms: unknown = Reflect.get(query, "description");
  return typeof terms === "object" && terms !== null && "conditions" in terms ? terms.conditions : [];
};

const isFormer = (method: string, given: readonly unknown[]): boolean =>
  given.length > 0 && ["first", "list", "exists"].includes(method);

/** Returns the number of records in an answer. */
function countOf(answer: unknown): number {
  if (Array.isArray(answer)) return answer.length;
  if (typeof answer !== "object" || answer === null) return Number(answer);
  return "items" in answer && Array.isArray(answer.items) ? answer.items.length : 1;
}

/** Returns the filter's JSON. A rule may pass anything. */
function filterText(filter: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(filter as JsonValue) ?? "undefined";
  } catch {
    text = "not JSON";
  }
  return text.length > TRACED_FILTER_CHARACTERS ? `${text.slice(0, TRACED_FILTER_CHARACTERS)}…` : text;
}

/** Returns the milliseconds since a time, rounded to microseconds. */
export const millisSince = (startedAt: number): number => Math.round((performance.now() - startedAt) * 1000) / 1000;

/** Returns the cause of a failure, worded for the author of the rule. */
export function causeText(cause: unknown): string {
  const text = cause instanceof Error ? `${cause.name}: ${cause.message}` : reasonOf(cause);
  return text.slice(0, TRACED_FILTER_CHARACTERS);
}
