import type { AppAccess } from "./app/index.ts";
import type { TableRecord } from "./records.ts";
import type { FilterOf } from "./typed/filters.ts";

/**
 * Reads one table for a rule or a hook, at once and past all rules. Inside a write it sees what the write has done so far in
 * its own file. An index must answer it: `id`, a unique field, a reference, or a declared index whose first fields the filter
 * names with `==` or `in`; otherwise it throws, so that the rule denies, and the log says which index to declare. The records
 * are frozen.
 */
export interface Lookup<R = TableRecord> {
  /** null when there is no such record. */
  get(id: string): R | null;
  /** The first match by id; null when there is none. */
  first(filter: FilterOf<R>): R | null;
  /** The matches by id. `limit` is 1,000 by default and at most. */
  list(filter: FilterOf<R>, options?: { limit?: number }): R[];
  exists(filter: FilterOf<R>): boolean;
}

/**
 * The last parameter of every rule: lookups of other records. A rule may run more than once for a request, and the same lookup
 * is made once for it. At most 10,000 different ones a request, then 503; 1,000 for the rule of a subscription, which is denied
 * then.
 */
export interface RuleContext {
  /** The namespace of the record or instance that the rule is about; null for buckets, rooms, channels and sign-up. */
  readonly namespace: string | null;
  /** null in a static namespace, and where `namespace` is null. */
  readonly instanceId: string | null;
  /** A table of that namespace and instance. In `create` the instance is empty. Throws where `namespace` is null. */
  table(name: string): Lookup;
  /** Any file. An instance that does not exist is empty, and is not made. Throws for what is not declared. */
  db(namespace: string, instanceId?: string): { table(name: string): Lookup };
}

/** The last parameter of hooks: `app`, and lookups in the hook's own file. */
export interface HookContext extends AppAccess {
  readonly namespace: string;
  /** null in a static namespace. */
  readonly instanceId: string | null;
  table(name: string): Lookup;
}
