import type { AppAccess } from "./app/index.ts";
import type { RecordList, RecordQuery } from "./app/queries.ts";
import type { TableRecord } from "./records.ts";
import type { AnyTables } from "./typed/declared.ts";
import type { FilterOf } from "./typed/filters.ts";

/**
 * Synchronous lookups in one table for a rule or a hook, which bypass all rules. Inside a write they see the write's earlier
 * changes in its own file. An index must answer each: `id`, a unique field, a reference, or a declared index whose first fields the
 * filter names with `==` or `in`; otherwise the lookup throws, so that the rule denies, and the log names the index to declare. The
 * records are frozen.
 */
export interface Lookup<R = TableRecord, Tables = AnyTables, Name = string> extends RecordQuery<R, Tables, Name> {
  /** Returns the record; null when there is none. */
  get(id: string): R | null;
  first(): R | null;
  /** @deprecated Until 0.4. Write `where(…).first()`. */
  first(filter: FilterOf<R>): R | null;
  list(): RecordList<R>;
  /** @deprecated Until 0.4. Write `where(…).limit(…).list().items`. */
  list(filter: FilterOf<R>, options?: { limit?: number }): R[];
  exists(): boolean;
  /** @deprecated Until 0.4. Write `where(…).exists()`. */
  exists(filter: FilterOf<R>): boolean;
}

/**
 * The last parameter of every rule: lookups of other records. A rule may run more than once for a request; lookups are memoized for
 * the request. At most 10,000 different ones per request, then 503; 1,000 for the rule of a subscription, which is then denied.
 */
export interface RuleContext {
  /** The namespace of the record or instance that the rule is about; null for buckets, rooms, channels and sign-up. */
  readonly namespace: string | null;
  /** The id of the instance; null in a static namespace, and where `namespace` is null. */
  readonly instanceId: string | null;
  /** The names of the members that the request has sent, in the insert and update rules of a table; null in all others. */
  readonly sent: readonly string[] | null;
  /** Returns lookups in a table of that namespace and instance. In `create` the instance is empty. Throws where `namespace` is null. */
  table(name: string): Lookup;
  /** Returns lookups in any file. An instance that does not exist is empty, and is not created. Throws for an undeclared name. */
  db(namespace: string, instanceId?: string): { table(name: string): Lookup };
}

/** The last parameter of hooks: `app`, and lookups in the hook's own file. */
export interface HookContext extends AppAccess {
  readonly namespace: string;
  /** The id of the instance; null in a static namespace. */
  readonly instanceId: string | null;
  table(name: string): Lookup;
}
