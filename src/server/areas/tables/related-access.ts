import { AppError } from "../../../kernel/errors.ts";
import { chain, isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { matches } from "../../../kernel/records/filter-match.ts";
import type { AccessOptions, ReadAccess, TableAddress } from "../../access/table-door.ts";
import type { TableRecord } from "../../config/types.ts";
import type { DatabaseFile } from "../../db/index.ts";
import { type ParsedFilter, parseAlternatives, parseFilter, type ReadableTables, withBoth } from "./filters/filter.ts";
import { CHANNEL_CONDITIONS_MAX, LIVE_RELATED_ROWS_MAX } from "./limits.ts";
import type { TableModel } from "./model/model.ts";
import { createRelatedGrants, type RelatedGrants, readableOf } from "./query/readable-tables.ts";
import { settledNow } from "./query/related-now.ts";
import type { Namespace, Table } from "./records/namespaces.ts";
import type { Asker, Grant, RecordRights } from "./rules/access.ts";
import { watchRelations } from "./rules/relations.ts";

type Related = NonNullable<AccessOptions["related"]>;

interface AskedPlace {
  namespace: Namespace;
  table: Table;
  address: TableAddress;
  /** Asks with lookups that are watched. */
  asking: Asker;
  /** Asks at the time of a change. */
  asker(): Asker;
}

/** Returns the access to the records of `base` that match filters with relations. [RT360] */
export function createRelatedAccess(rights: RecordRights) {
  const find = createRelatedGrants(rights);
  return (
    { namespace, table, address, asking, asker }: AskedPlace,
    related: Related,
    base: ReadAccess & { kind: "record" },
  ): MaybePromise<ReadAccess> => {
    const { model } = table;
    const { principal } = asking;
    const parse = (grants: RelatedGrants | null): ParsedFilter =>
      channelFilter(
        model,
        related,
        // Messages have the public address alone, one's own record too.
        Object.assign(
          readableOf(principal, (other) => grants?.get(other)),
          { own: undefined },
        ),
      );
    const grantsBy = (by: Asker) => find(by, model, [related.all, related.any]);
    return chain(grantsBy(asking), (first) => {
      const filter = refusing(related, () => parse(first));
      watchRelations(filter, asking.rules);
      let known = { grants: first, filter };
      /** Returns the filter by the present rights to the tables that it asks, which their rules may have changed. */
      const filterNow = (): MaybePromise<ParsedFilter> =>
        chain(grantsBy(asker()), (grants) => {
          if (!areEqual(known.grants, grants)) known = { grants, filter: parse(grants) };
          return known.filter;
        });
      const asked = (record: TableRecord): MaybePromise<boolean> =>
        decided(related, () =>
          chain(filterNow(), (present) => {
            const file = fileNow(namespace, address);
            if (file === null) return false;
            return matches(settledNow(file, present, record, { rows: 0, bytes: 0 }, LIVE_RELATED_ROWS_MAX), record);
          }),
        );
      const own = { all: filter.all, groups: [] };
      const allows = (record: TableRecord): MaybePromise<boolean> =>
        matches(own, record) && chain(base.allows(record), (isCovered) => isCovered && asked(record));
      return { kind: "record", allows };
    });
  };
}

/** Parses the filters of a subscription. Errors: 400; 403 for a table whose rule looks at each record. */
export function channelFilter(
  model: TableModel,
  { all, any }: { all?: unknown; any?: unknown },
  readable?: ReadableTables,
): ParsedFilter {
  const options = {
    conditionsMax: CHANNEL_CONDITIONS_MAX,
    isLive: true,
    ...(readable === undefined ? {} : { readable }),
  };
  const must = parseFilter(model, all, { name: "filters", ...options });
  return withBoth(must, parseAlternatives(model, any, { name: "orFilters", ...options }));
}

function refusing<T>(related: Related, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    if (cause instanceof AppError && cause.status < 500) related.refused(cause.message);
    throw cause;
  }
}

/** Returns whether a record matches; false, and reported, where that cannot be asked, or would take too long. */
function decided(related: Related, ask: () => MaybePromise<boolean>): MaybePromise<boolean> {
  const failed = (cause: unknown): false => {
    if (!(cause instanceof AppError) || cause.status >= 500) throw cause;
    related.undecided();
    return false;
  };
  try {
    const answer = ask();
    return isPromise(answer) ? answer.catch(failed) : answer;
  } catch (cause) {
    return failed(cause);
  }
}

/** Returns the file; null where the instance does not exist. */
const fileNow = (namespace: Namespace, { instanceId }: TableAddress): DatabaseFile | null =>
  namespace.kind === "static" ? namespace.file : namespace.instances.get(instanceId ?? "", { create: false });

/** Whether relations may ask the same by these rights. */
function areEqual(one: RelatedGrants | null, other: RelatedGrants | null): boolean {
  if (one === null || other === null) return one === other;
  return one.entries().every(([model, grant]) => isEqual(grant, other.get(model)));
}

function isEqual(one: Grant, other: Grant | undefined): boolean {
  if (one.kind !== other?.kind) return false;
  return one.kind !== "filter" || Bun.deepEquals(one.answer, (other as typeof one).answer, true);
}
